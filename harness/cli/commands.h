// The subcommands. Each adds itself to the app and sets `action` if it is the one that was called;
// main runs the action after parsing and turns what it throws into an exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/exit_code.h"

namespace rematch {

using Action = std::function<ExitCode()>;

void add_list(CLI::App& app, Action& action);
void add_describe(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
// `command` is argv: it goes into the report.
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
