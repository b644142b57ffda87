#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/sweep/this_worker.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {

std::string plan_file_in(const std::string& folder) { return folder + "/plan.json"; }

ComparisonPlan require_comparison_plan(const std::string& folder) {
  const std::string file = plan_file_in(folder);
  std::error_code error;  // set on an error other than a missing file
  if (!std::filesystem::exists(file, error)) {
    if (error) throw UsageError("cannot read " + in_quotes(file) + ": " + error.message());
    throw UsageError("there is no plan in " + in_quotes(folder) +
                     "; make one with rematch sweep plan FILE DIR");
  }
  ComparisonPlan plan = require_json_file(file, comparison_plan_from_json);
  if (plan.tool_version != REMATCH_VERSION) {
    throw UsageError(file + ": made by rematch " + plan.tool_version + ", but this is " +
                     REMATCH_VERSION + "; make a new plan in another folder");
  }
  return plan;
}

std::string comparison_words(const PlannedComparison& comparison) {
  std::string text = comparison.id;
  for (const std::string& word : comparison.arguments) {
    if (word == "--policy") break;
    text.append(" ").append(word);
  }
  return text + " --seed " + std::to_string(comparison.seed);
}

Claims claims_of(const ComparisonPlan& plan, SweepFolder& folder) {
  std::vector<std::string> ids;
  for (const PlannedComparison& comparison : plan.comparisons) ids.push_back(comparison.id);
  return {folder,
          std::move(ids),
          this_worker(plan.id),
          {monotonic_now, is_process_gone},
          {plan.stale_after}};
}

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* sweep = app.add_subcommand("sweep",
                                       "Runs many comparisons on one machine or a cluster: make a "
                                       "plan, then start any number of workers");
  sweep->callback([&action, sweep] {
    if (!sweep->get_subcommands().empty()) return;
    action = []() -> ExitCode {
      throw UsageError(
          "rematch sweep needs a subcommand, such as plan or run; see rematch sweep --help");
    };
  });
  add_sweep_plan(*sweep, action);
  add_sweep_run(*sweep, action);
  add_sweep_status(*sweep, action);
  add_sweep_merge(*sweep, action);
  add_sweep_emit(*sweep, action);
  sweep->footer(
      "Examples:\n"
      "  rematch sweep plan sweep.json results/wan --card h100 --memory 80GiB\n"
      "  rematch sweep run results/wan --gpus all\n"
      "  rematch sweep status results/wan\n"
      "  rematch sweep merge results/wan -o wan.json\n"
      "  rematch sweep emit results/wan --engine slurm --workers 16 > job.sh");
}

}  // namespace rematch
