// The subcommands. Each add_ function registers one subcommand with the app. The subcommand that
// the user calls sets `action`. After parsing, command_line.cpp runs the action and turns
// exceptions into an exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"

namespace rematch {

using Action = std::function<ExitCode()>;

// Registers a subcommand that calls `run` with its parsed flags. The constructor of Flags registers
// the flags.
template <class Flags>
std::shared_ptr<Flags> add_command(CLI::App& app, Action& action, const std::string& name,
                                   const std::string& description, ExitCode (*run)(const Flags&),
                                   const std::string& footer) {
  CLI::App* command = app.add_subcommand(name, description);
  auto flags = std::make_shared<Flags>(*command);
  command->footer(footer);
  command->callback([&action, flags, run] { action = [flags, run] { return run(*flags); }; });
  return flags;
}

void add_list(CLI::App& app, Action& action);
void add_describe(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
// `command` is argv; reports contain it.
void add_search(CLI::App& app, Action& action, const std::vector<std::string>& command);
void add_run(CLI::App& app, Action& action, const std::vector<std::string>& command);
void add_export(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_gate(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_render(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);

}  // namespace rematch
