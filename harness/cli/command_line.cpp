#include "harness/cli/command_line.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/help_format.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/process/interrupt.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  rematch list\n"
    "  rematch describe wan_small attn_only\n"
    "  rematch predict --model llama3_8b --policy none,full,attn_only\n"
    "  rematch run --model llama_small --policy none,full,attn_only --steps 10 -o report.json\n"
    "\n"
    "Exit codes: 0 ok, 1 tool error, 2 usage, 3 gate failed or bits differ, 4 inconclusive,\n"
    "5 finished but some points failed, 6 fingerprints differ, 128+n ended by signal n.";

int fail(ExitCode code, const std::string& message) {
  return static_cast<int>(end_with(code, message));
}

// Returns the full name of a command, such as "sweep plan".
std::string name_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  const bool is_nested = parent != nullptr && parent->get_parent() != nullptr;
  return (is_nested ? name_of(*parent) + " " : "") + command.get_name();
}

// Describes the first unknown flag or word and suggests the nearest known name.
std::string describe_leftover(const CLI::App& app) {
  const CLI::App* innermost = &app;
  while (!innermost->get_subcommands().empty()) innermost = innermost->get_subcommands().front();
  const CLI::App& scope = *innermost;
  const std::vector<std::string> left = scope.remaining();
  const std::string word = left.empty() ? "" : left.front();
  const bool is_flag = word.size() > 1 && word.front() == '-';
  if (is_flag) {
    const std::string flag = word.substr(0, word.find('='));
    return "unknown flag " + in_quotes(flag) + did_you_mean(flag, flags_of(scope));
  }
  if (scope.get_parent() != nullptr &&
      scope.get_subcommands([](const CLI::App*) { return true; }).empty()) {
    return in_quotes(word) + " is one argument too many for " + name_of(scope) + "; see rematch " +
           name_of(scope) + " --help";
  }
  std::vector<std::string> known;
  for (const CLI::App* command : scope.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  return "unknown subcommand " + in_quotes(word) + did_you_mean(word, known);
}

// Rewrites two of CLI11's messages in plainer words. For example "--steps: Value 0 not in range 1
// to 1000000" becomes "--steps must be 1 to 1000000, not 0".
std::string in_our_words(const std::string& message) {
  std::smatch found;
  static const std::regex range("([^:]+): Value (.*) not in range (.*)");
  if (std::regex_match(message, found, range)) {
    return found.str(1) + " must be " + found.str(3) + ", not " + found.str(2);
  }
  static const std::regex missing("([^:]+): \\d+ required \\S+ missing");
  if (std::regex_match(message, found, missing)) return found.str(1) + " needs a value";
  return message;
}

// Parses the arguments. Returns an exit code after an error or --help, and nothing otherwise.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return fail(ExitCode::kUsage, describe_leftover(app));
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    if (asked_for_help) {
      std::ostringstream text;
      app.exit(error, text);
      print(text.str());
      return static_cast<int>(ExitCode::kOk);
    }
    return fail(ExitCode::kUsage, in_our_words(error.what()) + "; see --help");
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stderr);
    return static_cast<int>(ExitCode::kUsage);
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  const std::vector<std::string> command(argv, argv + argc);
  if (const auto signal = take_held_interrupt()) throw Interrupted(*signal);
  if (run_as_child(command)) return static_cast<int>(ExitCode::kOk);
  announce_interrupts();
  // The profile and search commands may time ops in this process. Idle threads that spin would
  // disturb these times.
  if (command.size() > 1 && (command[1] == "profile" || command[1] == "search")) {
    prepare_timing(argv);
  }
  CLI::App app(
      "Measures and plans activation checkpointing: which activations to keep, at which memory "
      "cost.",
      "rematch");
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", std::string("rematch ") + REMATCH_VERSION);
  Action action;
  for (const auto add : {add_list, add_describe, add_trace, add_plan, add_predict, add_profile}) {
    add(app, action);
  }
  add_search(app, action, command);
  add_run(app, action, command);
  for (const auto add : {add_export, add_sweep, add_compare, add_gate, add_merge, add_render,
                         add_validate, add_doctor}) {
    add(app, action);
  }
  if (const std::optional<int> code = parse(app, argc, argv)) return *code;
  return static_cast<int>(action());
}

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    return fail(ExitCode::kUsage, error.what());
  } catch (const FormatError& error) {
    return fail(ExitCode::kUsage, error.what());
  } catch (const Interrupted& error) {
    return fail(ExitCode::kFirstSignal, "interrupted; " + error.what_remains) + error.signal;
  } catch (const std::exception& error) {
    // Cuts off the stack trace at the end of a LibTorch error's message.
    const std::string_view text = error.what();
    return fail(ExitCode::kToolError, std::string(text.substr(0, text.find("\nException raised"))));
  }
}

}  // namespace rematch
