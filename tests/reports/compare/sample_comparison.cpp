#include "tests/reports/compare/sample_comparison.h"

#include <cmath>
#include <stdexcept>

#include "tests/reports/sample_report.h"

namespace rematch::testing {

using std::chrono::nanoseconds;

void set_rounds(PointRecord& point, const std::vector<double>& microseconds) {
  point.time->samples.clear();
  for (const double round : microseconds) {
    const nanoseconds step(std::llround(round * 1000));
    point.time->samples.push_back({step, step});
  }
  point.time->step_median.reset();
}

PointRecord finite_point(const std::string& policy) {
  PointRecord point = sample_point(policy);
  point.steps.pop_back();
  return point;
}

PointRecord timed_point(const std::string& policy, const std::vector<double>& microseconds) {
  PointRecord point = finite_point(policy);
  set_rounds(point, microseconds);
  return point;
}

Report report_of(const std::vector<PointRecord>& points) {
  return Report{sample_provenance(), points, {}};
}

CompareRecord compare(const Report& base, const Report& candidate,
                      const CompareSettings& settings) {
  return compare_reports(base, "base.json", candidate, "candidate.json", settings);
}

CompareRecord compare(const PointRecord& base, const PointRecord& candidate,
                      const CompareSettings& settings) {
  return compare(report_of({base}), report_of({candidate}), settings);
}

const MetricRecord& metric_of(const CompareRecord& record, Metric metric, std::size_t row) {
  for (const MetricRecord& found : record.rows.at(row).metrics) {
    if (found.metric == metric) return found;
  }
  throw std::logic_error("no such metric");
}

std::vector<double> scaled(double factor) {
  std::vector<double> rounds;
  for (const double round : kBase) rounds.push_back(round * factor + 3);
  return rounds;
}

Report slower_report() {
  Report report = report_of({timed_point("none", kBase), timed_point("full", kBase),
                             timed_point("attn_only", kBase), finite_point("save_mm")});
  PointRecord& full = report.points[1];
  set_rounds(full, scaled(1.1));
  full.time->classes[at(Phase::kRecompute)][OpClass::kAttentionForward] =
      std::chrono::microseconds(950);
  full.memory->peak_allocated = *full.memory->peak_allocated + kMiB;
  full.memory->holders_at_peak[Holder::kSavedActivations] += kMiB;
  full.counts->by_class[at(Phase::kRecompute)] = {{OpClass::kAttentionForward, 80}};
  full.counts->by_op[at(Phase::kRecompute)] = {{"rematch::attention", 80}};
  report.points[2] = sample_oom("attn_only");
  report.points[2].identity = sample_point("attn_only").identity;
  report.points[3].steps[0].loss_bits = "0x3fc00001";
  report.points.push_back(finite_point("skip_nth(2)"));
  return report;
}

Report base_report() {
  return report_of({timed_point("none", scaled(1.0)), timed_point("full", kBase),
                    timed_point("attn_only", kBase), finite_point("save_mm"),
                    finite_point("save_compute")});
}

std::pair<PointRecord, PointRecord> points_with_kernels() {
  using std::chrono::microseconds;
  PointRecord base = timed_point("full", kBase);
  PointRecord candidate = timed_point("full", scaled(1.1));
  base.kernels->counted_steps = 2;
  base.kernels->time = {};
  base.kernels->time[at(Phase::kForward)] = {{"matmul", microseconds(2 * 3000)},
                                             {"attention_forward", microseconds(2 * 900)}};
  base.kernels->time[at(Phase::kRecompute)] = {{"attention_forward", microseconds(2 * 900)}};
  candidate.kernels->counted_steps = 4;
  candidate.kernels->time = {};
  candidate.kernels->time[at(Phase::kForward)] = {{"matmul", microseconds(4 * 2800)},
                                                  {"attention_forward", microseconds(4 * 900)}};
  candidate.kernels->time[at(Phase::kRecompute)] = {{"attention_forward", microseconds(4 * 1700)},
                                                    {"fill", microseconds(4 * 300)}};
  return {std::move(base), std::move(candidate)};
}

}  // namespace rematch::testing
