#include "reports/compare/compare.h"

#include <algorithm>
#include <cstdio>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/compare/differences.h"
#include "reports/render/tables/compare_table.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

struct CompareFlags : RecordFlags {
  explicit CompareFlags(CLI::App& app) {
    app.add_option("base", base, "Report to compare with");
    app.add_option("candidate", candidate, "Report to judge");
    app.add_option("--metric", metrics,
                   "Metrics to compare, separated by commas (default: all; see below)");
    app.add_option(
        "--threshold", thresholds,
        "Largest difference that is ignored: 2%, or for one metric: step_time=2%+200us, "
        "peak_allocated=1MiB. With 2%+200us, differences of at most 2% and differences of at most "
        "200us are ignored (default: 1% for step_time, 0 for the other metrics)");
    app.add_option(
        "--false-alarms", false_alarms,
        "Probability that a comparison of two equal reports calls any row faster or slower");
    app.add_option(
        "--fail-on", fail_on,
        "Findings for which the command exits with 3: slower, peak, counts, loss, missing, failed. "
        "It exits with 4 if a finding cannot be decided (default: no findings)");
    app.add_flag("--allow-mixed", allow_mixed,
                 "Compare reports of different environments; the verdict names the differences");
    add_record_flags(app, schema_name(kCompareSchema));
  }
  std::string base;
  std::string candidate;
  std::string metrics;
  std::vector<std::string> thresholds;
  std::string false_alarms = "1%";
  std::string fail_on;
  bool allow_mixed = false;
};

std::vector<std::string_view> metric_names() {
  std::vector<std::string_view> names;
  for (const Metric metric : kAll<Metric>) names.push_back(short_name(metric));
  return names;
}

Metric require_metric(const std::string& name) {
  if (const auto metric = metric_from_name(name)) return *metric;
  throw UsageError("unknown metric " + in_quotes(name) + did_you_mean(name, metric_names()));
}

// Drops duplicates, so that each metric is tested only once.
std::vector<Metric> parse_metrics(const std::string& text) {
  std::vector<Metric> metrics;
  for (const std::string& name : parse_list(text)) {
    const Metric metric = require_metric(name);
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) {
      metrics.push_back(metric);
    }
  }
  return metrics;
}

std::vector<FailOn> parse_fail_on(const std::string& text) {
  std::vector<FailOn> fail_on;
  for (const std::string& name : parse_list(text)) {
    fail_on.push_back(parse_word<FailOn>("--fail-on", name));
  }
  return fail_on;
}

// Parses a value in the metric's unit, such as "200us", "1MiB" or "3".
double parse_absolute(Metric metric, const std::string& text) {
  switch (metric) {
    case Metric::kStepTime:
      return parse_nanoseconds(text);
    case Metric::kPeakAllocated:
    case Metric::kPeakReserved:
    case Metric::kCollectiveBytes:
      return static_cast<double>(parse_bytes(text).count);
    default:
      return parse_positive(text);
  }
}

// Parses a threshold such as "2%", "200us" or "2%+200us".
Floor parse_floor(Metric metric, const std::string& text) {
  const std::size_t plus = text.find('+');
  const std::string first = text.substr(0, plus);
  Floor floor;
  if (first.ends_with('%')) {
    floor.relative_ratio = parse_percent(first);
  } else {
    floor.absolute = parse_absolute(metric, first);
  }
  if (plus == std::string::npos) return floor;
  if (!first.ends_with('%')) {
    throw UsageError("--threshold '" + text + "': give the percentage first, as in 2%+200us");
  }
  floor.absolute = parse_absolute(metric, text.substr(plus + 1));
  return floor;
}

std::map<Metric, Floor> parse_floors(const std::vector<std::string>& thresholds) {
  std::map<Metric, Floor> floors;
  for (const std::string& threshold : thresholds) {
    for (const std::string& part : parse_list(threshold)) {
      const std::size_t equals = part.find('=');
      const Metric metric =
          equals == std::string::npos ? Metric::kStepTime : require_metric(part.substr(0, equals));
      floors[metric] =
          parse_floor(metric, equals == std::string::npos ? part : part.substr(equals + 1));
    }
  }
  return floors;
}

// Throws UsageError if --fail-on names a metric that --metric leaves out.
void require_compared(const CompareSettings& settings) {
  for (const FailOn what : settings.fail_on) {
    const std::vector<Metric> metrics = metrics_of(what);
    const bool is_compared =
        metrics.empty() || std::any_of(metrics.begin(), metrics.end(), [&](Metric metric) {
          return std::find(settings.metrics.begin(), settings.metrics.end(), metric) !=
                 settings.metrics.end();
        });
    if (is_compared) continue;
    throw UsageError("--fail-on " + std::string(to_string(what)) +
                     " is not among the compared metrics: add " +
                     std::string(short_name(metrics.front())) + " to --metric, or leave it out");
  }
}

CompareSettings settings_of(const CompareFlags& flags) {
  CompareSettings settings;
  if (!flags.metrics.empty()) settings.metrics = parse_metrics(flags.metrics);
  settings.floors = parse_floors(flags.thresholds);
  settings.false_alarm_ratio = parse_percent(flags.false_alarms);
  settings.fail_on = parse_fail_on(flags.fail_on);
  require_compared(settings);
  return settings;
}

ExitCode exit_code_of(const CompareRecord& record) {
  if (!record.failed_on.empty()) {
    return end_with(ExitCode::kGateFailed, "fails on " + joined(record.failed_on));
  }
  const std::vector<std::string> open = undecided(record);
  if (open.empty()) return ExitCode::kOk;
  return end_with(ExitCode::kInconclusive, "inconclusive; undecided: " + joined(open));
}

ExitCode run(const CompareFlags& flags) {
  if (flags.candidate.empty()) {
    throw UsageError("compare takes two reports: rematch compare base.json mine.json");
  }
  flags.require_one_format();
  const CompareSettings settings = settings_of(flags);
  const OutputFile output(flags.request({file_kind::kCompare}, {flags.base, flags.candidate}));
  const auto [base, candidate] = read_two_reports(flags.base, flags.candidate);
  const CompareRecord record =
      compare_reports(base, flags.base, candidate, flags.candidate, settings);
  if (!record.environment_differences.empty() && !flags.allow_mixed) {
    return end_with(
        ExitCode::kFingerprintMismatch,
        "measured in different environments: " + describe(record.environment_differences) +
            "; compare reports of one machine and version, or give --allow-mixed");
  }
  flags.show_record(
      [&] { return compare_to_json(record); },
      [&](TableFormat format) { return render_compare(record, format, terminal_columns()); });
  return exit_code_of(record);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  add_command<CompareFlags>(
      app, action, "compare",
      "Compares two reports: step times statistically; bytes, counts and losses exactly", run,
      "Metrics:\n" + table::format_line(joined(metric_names()), TableFormat::kText, 100) +
          "Examples:\n"
          "  rematch compare base.json candidate.json\n"
          "  rematch compare base.json candidate.json --fail-on slower,peak,counts\n"
          "  rematch compare base.json candidate.json --metric step_time,peak_allocated \\\n"
          "      --threshold step_time=3%+500us,peak_allocated=1MiB --markdown\n"
          "Exit codes: 0 compared, and found nothing that --fail-on names, 2 a file or flag cannot "
          "be used,\n"
          "3 found what --fail-on names, 4 inconclusive: too noisy, a figure or a point is "
          "missing,\n"
          "or nothing was compared, 6 different environments.");
}

}  // namespace rematch
