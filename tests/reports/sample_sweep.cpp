#include "tests/reports/sample_sweep.h"

#include <algorithm>
#include <array>

#include "tests/reports/sample_report.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kSweepMiB = std::int64_t{1} << 20;

struct Place {
  const char* model;
  std::int64_t tokens;
  std::int64_t batch;
  std::uint64_t seed;
};

std::map<std::string, std::int64_t> dimensions_at(const Place& place) {
  return {{"batch", place.batch},
          {"dim", 128},
          {"kv_tokens", 2 * place.tokens},
          {"layers", 8},
          {"tokens", place.tokens}};
}

// Makes a point whose policy needs fewer bytes than policy none, by the fraction `saved`. All bytes
// grow with the shape.
PointRecord swept_point(const Place& place, const std::string& policy, double saved, double ratio) {
  PointRecord point = policy == "none" ? sample_point("none")
                                       : sample_recomputing(policy, 4, Bytes{kSweepMiB}, ratio);
  point.identity.model = place.model;
  point.identity.dimensions = dimensions_at(place);
  point.identity.seed = place.seed;
  const std::int64_t size = place.tokens * place.batch;
  point.memory->timeline.reset();
  point.memory->peak_allocated =
      Bytes{static_cast<std::int64_t>((1 - saved) * static_cast<double>(10 * size * kSweepMiB))};
  point.memory->predicted_peak_allocated = point.memory->peak_allocated;
  const auto step = std::chrono::microseconds(
      static_cast<std::int64_t>(ratio * static_cast<double>(1000 * size)));
  point.time->step_median = step;
  point.time->samples = {{step, step}, {step, step}};
  point.time->step_interval.reset();
  return point;
}

UnmeasuredComparison unmeasured_at(const Place& place, const char* outcome, const char* reason) {
  return {place.model, dimensions_at(place), "float32", place.seed, {"none", "full"}, outcome,
          reason};
}

void add_shape(Report& report, const Place& place) {
  report.points.push_back(swept_point(place, "none", 0, 1));
  report.points.push_back(swept_point(place, "full", 0.7, 1.3));
  report.points.push_back(swept_point(place, "attn_only",
                                      std::min(0.6, 0.02 * static_cast<double>(place.tokens)),
                                      1 + 0.004 * static_cast<double>(place.tokens)));
  report.points.push_back(swept_point(place, "nth_last(2)", 0.25, 1.08));
}

}  // namespace

Report representative_sweep() {
  Report report{sample_provenance(), {}, {}};
  for (const std::int64_t tokens : {16, 8, 32}) {
    for (const std::int64_t batch : {1, 2}) {
      for (const std::uint64_t seed : {0, 1}) {
        if (tokens == 32 && batch == 2 && seed == 1) continue;
        add_shape(report, {"llama_small", tokens, batch, seed});
      }
    }
  }
  report.unmeasured.push_back(
      unmeasured_at({"llama_small", 32, 2, 1}, "skipped",
                    "the lowest predicted peak is 80 GiB; this machine has: 48 GiB"));
  // The comparison of 32 tokens, batch 2, seed 0.
  for (std::size_t point = report.points.size() - 4; point < report.points.size(); ++point) {
    PointRecord& record = report.points[point];
    if (record.policy != "none") continue;
    record = sample_oom("none");
    record.identity = swept_point({"llama_small", 32, 2, 0}, "none", 0, 1).identity;
  }
  report.points[2].parity->loss_bits_equal = false;
  report.points[7].time->ratio->verdict = "unsure";
  add_shape(report, {"wan_small", 64, 1, 0});
  report.unmeasured.push_back(
      unmeasured_at({"wan_small", 128, 1, 0}, "failed", "ended by signal 9: <b>killed</b>"));
  report.unmeasured.push_back(unmeasured_at({"moe_small", 8, 1, 0}, "missing", ""));
  return report;
}

Report large_sweep(int num_comparisons) {
  constexpr std::array kModels = {"llama_small", "wan_small", "ltx_small", "moe_small",
                                  "deepseek_small"};
  constexpr std::array kPolicies = {"attn_only",    "save_mm",     "nth_last(2)",
                                    "nth_first(2)", "skip_nth(2)", "mlp_only"};
  Report report{sample_provenance(), {}, {}};
  for (int index = 0; index < num_comparisons; ++index) {
    const Place place{kModels.at(static_cast<std::size_t>(index) % kModels.size()),
                      8 * (1 + index / 5 % 10), 1 + index / 50, 0};
    report.points.push_back(swept_point(place, "none", 0, 1));
    report.points.push_back(swept_point(place, "full", 0.7, 1.3));
    for (std::size_t policy = 0; policy < kPolicies.size(); ++policy) {
      const auto part = static_cast<double>(policy + 1);
      report.points.push_back(swept_point(place, kPolicies.at(policy), 0.1 * part,
                                          1 + 0.003 * part * static_cast<double>(index % 7)));
    }
  }
  return report;
}

}  // namespace rematch::testing
