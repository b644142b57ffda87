#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/sweep/claims.h"
#include "harness/sweep/this_worker.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "reports/record/json/record_json.h"
#include "reports/record/merge_reports.h"

namespace rematch {
namespace {

struct SweepMergeFlags : OutputFlags {
  explicit SweepMergeFlags(CLI::App& app) {
    app.add_option("folder", folder, "Folder of the sweep")->required();
    add_output_flags(app, "Report to write (default: stdout)");
    app.add_flag("--allow-mixed", allow_mixed,
                 "Accept cards and machines of several kinds, kept apart in \"sources\"");
  }
  std::string folder;
  bool allow_mixed = false;
};

// Throws UsageError unless the report belongs to this comparison. A user may have replaced the file
// by another report.
void require_report_of(const PlannedComparison& comparison, const Report& report,
                       const std::string& file) {
  for (std::size_t index = 0; index < report.points.size(); ++index) {
    const PointIdentity& point = report.points[index].identity;
    const bool is_its = point.model == comparison.spec.preset &&
                        point.dimensions == comparison.spec.dimensions &&
                        point.dtype == comparison.spec.dtype && point.seed == comparison.seed;
    if (is_its) continue;
    throw UsageError(file + ": points[" + std::to_string(index) +
                     "] differs in model, shape, dtype or seed from the plan's comparison " +
                     comparison.id + "; was it put there by hand?");
  }
}

UnmeasuredComparison unmeasured_of(const PlannedComparison& comparison, const Judgement& judged) {
  UnmeasuredComparison one{comparison.spec.preset,
                           comparison.spec.dimensions,
                           comparison.spec.dtype,
                           comparison.seed,
                           comparison.policies,
                           "missing",
                           ""};
  if (judged.state == ClaimState::kFailed) one.outcome = "failed";
  if (judged.state == ClaimState::kSkipped) one.outcome = "skipped";
  if (one.outcome != "missing") one.reason = judged.reason;
  return one;
}

std::string why_missing(const Judgement& judged) {
  switch (judged.state) {
    case ClaimState::kFailed:
      return "failed: " + judged.reason;
    case ClaimState::kSkipped:
      return "skipped: " + judged.reason;
    case ClaimState::kFree:
      return "not measured yet";
    default:
      return judged.holder ? "started by " + judged.holder->host : "started";
  }
}

ExitCode merge(const SweepMergeFlags& flags) {
  const ComparisonPlan plan = require_comparison_plan(flags.folder);
  const OutputFile output(flags.request({file_kind::kReport}, {flags.folder}));
  DiskSweepFolder folder(flags.folder);
  Claims claims = claims_of(plan, folder);
  claims.look();
  std::vector<std::string> files;
  std::vector<std::size_t> measured;
  std::vector<std::size_t> missing;
  for (std::size_t index = 0; index < plan.comparisons.size(); ++index) {
    const std::string name = report_name(plan.comparisons[index].id);
    const bool has_report = folder.has_report(name);
    (has_report ? measured : missing).push_back(index);
    if (has_report) files.push_back(flags.folder + "/reports/" + name);
  }
  std::vector<Report> reports = read_reports(files);
  for (std::size_t index = 0; index < measured.size(); ++index) {
    require_report_of(plan.comparisons[measured[index]], reports[index], files[index]);
  }
  std::vector<std::string> lines;
  for (const std::size_t index : missing) {
    const PlannedComparison& comparison = plan.comparisons[index];
    lines.push_back(comparison_words(comparison) + ": " + why_missing(claims.of(comparison.id)));
  }
  say_missing(lines, plan.comparisons.size(), "comparisons", "see rematch sweep status");
  if (reports.empty()) return ExitCode::kSomePointsFailed;
  // Comparisons are in the plan's order. Points of a comparison are in the order of the
  // comparison's report.
  auto result =
      merge_reports(std::move(reports),
                    flags.allow_mixed ? MixedEnvironments::kKeepApart : MixedEnvironments::kRefuse,
                    PointOrder::kGiven);
  if (const auto* differ = std::get_if<FingerprintsDiffer>(&result)) {
    return end_with(ExitCode::kFingerprintMismatch, differ->message);
  }
  if (const auto* rejected = std::get_if<Rejected>(&result)) throw UsageError(rejected->message);
  auto& merged = std::get<MergedReport>(result);
  for (const std::string& note : merged.notes) say(note);
  for (const std::size_t index : missing) {
    const PlannedComparison& comparison = plan.comparisons[index];
    merged.report.unmeasured.push_back(unmeasured_of(comparison, claims.of(comparison.id)));
  }
  write_output(flags.output, report_to_text(merged.report));
  const auto& points = merged.report.points;
  const bool all_ok = std::all_of(points.begin(), points.end(), [](const PointRecord& point) {
    return point.status == PointStatus::kOk;
  });
  return all_ok && missing.empty() ? ExitCode::kOk : ExitCode::kSomePointsFailed;
}

}  // namespace

void add_sweep_merge(CLI::App& sweep, Action& action) {
  add_command<SweepMergeFlags>(
      sweep, action, "merge", "Merges all reports of a sweep into one report, in the plan's order",
      merge,
      "Example: rematch sweep merge results/wan -o wan.json\n"
      "It can run at any time, even while workers run; missing comparisons are listed.\n"
      "Exit codes: 0 complete and ok, 5 comparisons are missing or points failed, 6 mixed "
      "environments.");
}

}  // namespace rematch
