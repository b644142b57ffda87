#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/require.h"
#include "harness/cli/sweep_verbs.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/json.h"

namespace rematch {

std::string plan_file_in(const std::string& folder) { return folder + "/plan.json"; }

ComparisonPlan require_comparison_plan(const std::string& folder) {
  const std::string file = plan_file_in(folder);
  if (!std::filesystem::exists(file)) {
    throw UsageError("there is no plan in " + in_quotes(folder) +
                     "; make one with rematch sweep plan FILE DIR");
  }
  const Json json = require_json_file(file);
  ComparisonPlan plan = require_readable(file, [&] { return comparison_plan_from_json(json); });
  if (plan.tool_version != REMATCH_VERSION) {
    throw UsageError(file + ": made by rematch " + plan.tool_version + ", and this is " +
                     REMATCH_VERSION + "; make a plan anew in a folder of its own");
  }
  return plan;
}

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* sweep = app.add_subcommand(
      "sweep", "Many comparisons on one machine or a cluster: plan, then any number of workers");
  sweep->callback([&action, sweep] {
    if (!sweep->get_subcommands().empty()) return;
    action = []() -> ExitCode {
      throw UsageError("rematch sweep needs a verb, such as plan; see rematch sweep --help");
    };
  });
  add_sweep_plan(*sweep, action);
  sweep->footer(
      "Examples:\n"
      "  rematch sweep plan sweep.json results/wan\n"
      "  rematch sweep plan sweep.json results/wan --card h100 --memory 80GiB");
}

}  // namespace rematch
