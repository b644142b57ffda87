#include "harness/cli/commands.h"

#include "harness/cli/libtorch/doctor.h"

namespace rematch {

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Shows what this build and machine can do, and why other features are missing");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON instead of the table");
  command->footer("Example: rematch doctor");
  command->callback([&action, json] { action = [json] { return doctor(*json); }; });
}

}  // namespace rematch
