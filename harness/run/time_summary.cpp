#include "harness/run/time_summary.h"

#include <cmath>

namespace rematch {
namespace {

std::chrono::nanoseconds nanoseconds(double count) {
  return std::chrono::nanoseconds(std::llround(count));
}

}  // namespace

TimeRecord summarize_blocks(const std::vector<TimedBlock>& blocks) {
  TimeRecord time;
  std::map<std::string, std::vector<double>> phases;
  for (const TimedBlock& block : blocks) {
    time.samples.insert(time.samples.end(), block.samples.begin(), block.samples.end());
    for (const auto& [phase, duration] : block.phases) {
      phases[phase].push_back(static_cast<double>(duration.count()));
    }
  }
  for (const auto& [phase, medians] : phases) time.phases[phase] = nanoseconds(median(medians));
  const Blocks samples = blocks_of(time);
  const Estimate step = median_over_blocks(samples);
  time.step_median = nanoseconds(step.value);
  if (step.interval) {
    time.step_interval = {nanoseconds(step.interval->low), nanoseconds(step.interval->high)};
  }
  std::vector<double> all;
  for (const std::vector<double>& block : samples)
    all.insert(all.end(), block.begin(), block.end());
  time.step_mad = nanoseconds(median_absolute_deviation(all));
  const QualityReport quality = judge_quality(samples);
  time.quality = TimeQuality{std::string(to_string(quality.verdict)), quality.noise_ratio,
                             quality.drift_ratio, quality.reasons};
  return time;
}

StepRatioRecord ratio_to(const std::string& reference_policy, const TimeRecord& time,
                         const TimeRecord& reference, double floor) {
  const Estimate ratio = paired_ratio(blocks_of(time), blocks_of(reference));
  StepRatioRecord record;
  record.reference = reference_policy;
  record.ratio = ratio.value;
  if (ratio.interval) record.interval = {{ratio.interval->low, ratio.interval->high}};
  record.verdict = std::string(to_string(judge_ratio(ratio, floor)));
  return record;
}

Blocks blocks_of(const TimeRecord& time) {
  Blocks blocks;
  for (const auto& samples : time.samples) {
    std::vector<double>& block = blocks.emplace_back();
    for (const std::chrono::nanoseconds sample : samples) {
      block.push_back(static_cast<double>(sample.count()));
    }
  }
  return blocks;
}

}  // namespace rematch
