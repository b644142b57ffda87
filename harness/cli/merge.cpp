#include "harness/cli/flags/shared_flags.h"
#include "policies/base/rejected.h"
#include "reports/record/merge_reports.h"

#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

struct MergeFlags : OutputFlags {
  explicit MergeFlags(CLI::App& app) {
    app.add_option("reports", files, "Reports and point files to merge");
    add_output_flags(app, "Report to write (default: stdout)");
    app.add_flag("--allow-mixed", allow_mixed,
                 "Accept reports of different environments, kept apart in \"sources\"");
  }
  std::vector<std::string> files;
  bool allow_mixed = false;
};

Report read_report_or_point(const std::string& file) {
  return require_json_file(file, [](const Json& json) {
    const std::string& schema = JsonField(json).at("schema").string();
    if (!schema.starts_with("rematch.point/")) return report_from_json(json);
    PointFile point = point_file_from_json(json);
    Report report;
    report.provenance = std::move(point.provenance);
    report.points.push_back(std::move(point.point));
    return report;
  });
}

ExitCode exit_code_of(const MergedReport& merged) {
  for (const std::string& note : merged.notes) say(note);
  std::vector<std::string> missing;
  for (const PlannedPoint& point : merged.missing) {
    missing.push_back(point.policy + ", " + std::string(to_string(point.schedule)) + ", key " +
                      point.key.substr(0, 12));
  }
  say_missing(missing, merged.report.planned.size(), "points", "run their shards and merge again");
  if (!missing.empty()) return ExitCode::kSomePointsFailed;
  for (const PointRecord& point : merged.report.points) {
    if (point.status != PointStatus::kOk) return ExitCode::kSomePointsFailed;
  }
  return ExitCode::kOk;
}

ExitCode run(const MergeFlags& flags) {
  if (flags.files.empty())
    throw UsageError("no report given: rematch merge a.json b.json -o out.json");
  const OutputFile output(flags.request({file_kind::kReport}, flags.files));
  std::vector<Report> reports;
  for (const std::string& file : flags.files) reports.push_back(read_report_or_point(file));
  auto result = merge_reports(std::move(reports), flags.allow_mixed ? MixedEnvironments::kKeepApart
                                                                    : MixedEnvironments::kRefuse);
  if (const auto* differ = std::get_if<FingerprintsDiffer>(&result)) {
    return end_with(ExitCode::kFingerprintMismatch, differ->message);
  }
  if (const auto* rejected = std::get_if<Rejected>(&result)) throw UsageError(rejected->message);
  const auto& merged = std::get<MergedReport>(result);
  write_output(flags.output, report_to_text(merged.report));
  return exit_code_of(merged);
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  add_command<MergeFlags>(
      app, action, "merge", "Merges the reports of a run's shards; their order does not matter",
      run,
      "Examples:\n"
      "  rematch merge mine.shard-*.json -o mine.json\n"
      "  rematch merge h100.json l40s.json --allow-mixed -o both.json\n"
      "Exit code 5: points of the run are missing or failed; 6: mixed environments.");
}

}  // namespace rematch
