#include "tests/reports/render/sample_comparisons.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/reports/render/sample_values.h"
#include "tests/reports/sample_report.h"

namespace rematch::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr const char* kLong =
    "torchtune(ac_mode=selective,ac_option=2,save=[attention,aten::mm,aten::addmm])";

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Activations grow in forward and shrink in backward. Backward has `bumps` short rises from
// recompute.
MemoryTimeline timeline(int samples, std::int64_t saved, int bumps) {
  MemoryTimeline line;
  for (int sample = 0; sample < samples; ++sample) {
    const double part = static_cast<double>(sample) / samples;
    const bool forward = part < 0.3;
    const bool optimizer = part > 0.95;
    const double filled = forward ? part / 0.3 : std::max(0.0, (0.95 - part) / 0.65);
    const double wave = bumps == 0 || forward || optimizer
                            ? 0
                            : std::max(0.0, std::sin(part * bumps * 2 * 3.14159));
    line.op_index.push_back(3 * sample + 1);
    line.phase.push_back(forward      ? Phase::kForward
                         : optimizer  ? Phase::kOptimizer
                         : wave > 0.5 ? Phase::kRecompute
                                      : Phase::kBackward);
    line.bytes[Holder::kParameters].push_back(15 * kMiB);
    line.bytes[Holder::kOptimizer].push_back(30 * kMiB);
    line.bytes[Holder::kGradients].push_back(
        static_cast<std::int64_t>((forward ? 0 : 15 * std::min(1.0, part)) * kMiB));
    line.bytes[Holder::kSavedActivations].push_back(
        static_cast<std::int64_t>(filled * static_cast<double>(saved)));
    line.bytes[Holder::kRecomputeTransient].push_back(static_cast<std::int64_t>(wave * 5 * kMiB));
    line.bytes[Holder::kOther].push_back(kMiB);
  }
  return line;
}

std::vector<StepRecord> losses(double start, int steps, const std::string& tag) {
  std::vector<StepRecord> records;
  for (int step = 0; step < steps; ++step) {
    StepRecord record;
    record.loss = start / (1 + 0.3 * step);
    record.loss_bits = tag + std::to_string(step);
    records.push_back(record);
  }
  return records;
}

// Makes a point whose saved activations are `less` MiB smaller than the 55 MiB of policy `none`.
PointRecord representative_point(const std::string& policy, std::int64_t recomputed,
                                 std::int64_t less, double ratio, Schedule schedule) {
  PointRecord point = policy == "none" ? sample_point(policy, schedule)
                                       : sample_recomputing(policy, recomputed, Bytes{less * kMiB},
                                                            ratio, schedule);
  point.memory->timeline = timeline(30, (55 - less) * kMiB, recomputed == 0 ? 0 : 8);
  const auto scaled = [ratio](double us) {
    return nanoseconds(static_cast<std::int64_t>(us * 1000 * ratio));
  };
  point.time->step_median = scaled(10000);
  point.time->step_interval = {{scaled(9900), scaled(10100)}};
  point.time->phases = {{"forward", microseconds(3000)},
                        {"backward", scaled(10000) - microseconds(4000)},
                        {"optimizer", microseconds(1000)}};
  point.time->classes[at(Phase::kForward)] = {{OpClass::kMatmul, microseconds(1500)},
                                              {OpClass::kAttentionForward, microseconds(900)},
                                              {OpClass::kElementwise, microseconds(400)},
                                              {OpClass::kNorm, microseconds(120)}};
  if (recomputed > 0) {
    point.time->classes[at(Phase::kRecompute)] = {
        {OpClass::kMatmul, microseconds(150 * recomputed)},
        {OpClass::kAttentionForward, microseconds(100 * recomputed)}};
  }
  point.steps = losses(5.7, 8, "0x");
  return point;
}

}  // namespace

Report representative_report() {
  Report report{sample_provenance(), {}, {}};
  report.provenance.environment.host_memory = Bytes{120 * kMiB};
  report.provenance.reproduce = "rematch run --policy '<b>none</b>' && echo done";
  auto& points = report.points;
  points.push_back(representative_point("none", 0, 0, 1, Schedule::kWholeRegion));
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    const int lower = schedule == Schedule::kOnDemand ? 2 : 0;
    points.push_back(representative_point("full", 8, 30 + lower, 1.31, schedule));
    points.push_back(representative_point("nth_first(2)", 4, 15 + lower, 1.16, schedule));
    points.push_back(representative_point("attn_only", 0, 22 + lower, 1.12, schedule));
  }
  PointRecord hostile = representative_point(kHostile, 6, 18, 1.2, Schedule::kOnDemand);
  hostile.memory->peak_scope = "<img src=x onerror=alert(1)>";
  hostile.memory->predicted_peak_allocated = Bytes{88 * kMiB};
  points.push_back(hostile);
  points.push_back(representative_point(kLong, 8, 20, 1.24, Schedule::kOnDemand));
  PointRecord different = representative_point("save_mm", 8, 20, 0.97, Schedule::kOnDemand);
  different.parity->gradient_bits_equal = false;
  different.parity->first_different_step = 2;
  different.parity->first_different_tensor = "blocks.3.attention.wq.weight";
  different.steps = losses(5.8, 8, "0y");
  different.steps[6].loss.reset();
  different.steps[6].loss_bits = "0x7fc00000";
  points.push_back(different);
  points.push_back(sample_oom("save_compute"));
  // differences of the losses in three repeated runs of policy `none`
  for (const double wrong : {-0.03, 0.01, 0.04}) {
    RepeatRecord repeat{point_key(points.front().identity), "none", PointStatus::kOk, "",
                        losses(5.7 + wrong, 8, "0x")};
    report.repeats.push_back(repeat);
  }
  points.back().reason = "asked for 20 MiB at <aten::addmm> with 90 MiB held";
  return report;
}

Report random_report(std::uint32_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  Report report{sample_provenance(), {}, {}};
  const std::int64_t scale = std::int64_t{1} << below(45);
  const std::int64_t time_scale = std::int64_t{1} << below(40);
  if (below(2) == 0) report.provenance.environment.host_memory = Bytes{below(4 * scale)};
  const std::int64_t count = 1 + below(40);
  for (std::int64_t index = 0; index < count; ++index) {
    const std::string policy =
        index == 0
            ? "none"
            : std::string(static_cast<std::size_t>(1 + below(60)), 'w') + std::to_string(index);
    PointRecord point =
        representative_point(policy, below(9), below(40), 1 + 0.01 * static_cast<double>(below(90)),
                             below(2) == 0 ? Schedule::kOnDemand : Schedule::kWholeRegion);
    if (below(10) == 0) point = sample_oom(policy);
    if (point.memory && below(5) != 0) point.memory->peak_allocated = Bytes{below(scale + 1)};
    if (point.memory) point.memory->predicted_peak_allocated = Bytes{below(scale + 1)};
    if (point.time) {
      point.time->step_median = nanoseconds(below(time_scale + 1));
      point.time->step_interval = {{nanoseconds(below(time_scale + 1)), nanoseconds(time_scale)}};
      point.time->ratio->ratio = std::ldexp(1.0, static_cast<int>(below(30)) - 15);
      if (below(6) == 0) point.time.reset();
    }
    if (!point.steps.empty() && below(4) == 0) {
      point.steps = losses(std::ldexp(1.0, static_cast<int>(below(60)) - 30),
                           static_cast<int>(1 + below(90)), std::to_string(index));
    }
    report.points.push_back(point);
  }
  return report;
}

Report large_report(int points) {
  Report report{sample_provenance(), {}, {}};
  report.points.push_back(representative_point("none", 0, 0, 1, Schedule::kOnDemand));
  for (int index = 1; index < points; ++index) {
    PointRecord point =
        representative_point("layers([" + std::to_string(index) + ",40,52])", index % 9, index % 40,
                             1 + 0.001 * (500 - index % 500), Schedule::kOnDemand);
    point.memory->timeline = timeline(512, 30 * kMiB, 8);
    point.memory->peak_allocated = Bytes{(60 + index % 41) * kMiB + index};
    report.points.push_back(point);
  }
  return report;
}

}  // namespace rematch::testing
