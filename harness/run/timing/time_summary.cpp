#include "harness/run/timing/time_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

namespace rematch {
namespace {

std::chrono::nanoseconds nanoseconds(double count) {
  return std::chrono::nanoseconds(std::llround(count));
}

void keep_least(std::optional<int>& least, const std::optional<int>& value) {
  if (value && (!least || *value < *least)) least = value;
}

template <class Number>
void keep_most(std::optional<Number>& most, const std::optional<Number>& value) {
  if (value && (!most || *value > *most)) most = value;
}

// Takes the median of each phase and op class over the rounds that timed it.
void summarize_classes(const std::vector<TimedRound>& rounds, TimeRecord& time) {
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    std::map<OpClass, std::vector<double>> spent;
    for (const TimedRound& round : rounds) {
      for (const auto& [op_class, duration] : round.classes[phase]) {
        spent[op_class].push_back(static_cast<double>(duration.count()));
      }
    }
    for (const auto& [op_class, durations] : spent) {
      time.classes[phase][op_class] = nanoseconds(median(durations));
    }
  }
}

// A sample is an outlier if it exceeds two limits: its round's median plus this many median
// absolute deviations, and the median times this ratio. In a normal distribution about one sample
// in a million exceeds the first limit. The second limit excludes deviations that a plot would not
// show.
constexpr double kOutlierDeviations = 5 * 1.4826;
constexpr double kOutlierRatio = 1.1;

int count_outliers(const Rounds& rounds) {
  std::ptrdiff_t outliers = 0;
  for (const std::vector<double>& round : rounds) {
    const double middle = median(round);
    const double limit = std::max(middle + kOutlierDeviations * median_absolute_deviation(round),
                                  kOutlierRatio * middle);
    outliers += std::count_if(round.begin(), round.end(),
                              [limit](double sample) { return sample > limit; });
  }
  return static_cast<int>(outliers);
}

// Combines the device states of all rounds. Adds up retries and repeats, and keeps the median clock
// and the worst value of every other field.
std::optional<DeviceStateRecord> summarize_states(const std::vector<TimedRound>& rounds) {
  std::optional<DeviceStateRecord> all;
  std::vector<double> clocks;
  std::set<std::string> reasons;
  for (const TimedRound& round : rounds) {
    if (!round.device_state) continue;
    if (!all) all.emplace();
    const DeviceStateRecord& state = *round.device_state;
    if (state.sm_clock_median_mhz) clocks.push_back(*state.sm_clock_median_mhz);
    keep_least(all->sm_clock_least_mhz, state.sm_clock_least_mhz);
    keep_least(all->memory_clock_least_mhz, state.memory_clock_least_mhz);
    keep_most(all->temperature_most_celsius, state.temperature_most_celsius);
    keep_most(all->other_processes, state.other_processes);
    if (state.allocator_retries) {
      all->allocator_retries = all->allocator_retries.value_or(0) + *state.allocator_retries;
    }
    if (state.round_repeats) {
      all->round_repeats = all->round_repeats.value_or(0) + *state.round_repeats;
    }
    reasons.insert(state.throttle_reasons.begin(), state.throttle_reasons.end());
  }
  if (!all) return std::nullopt;
  if (!clocks.empty()) all->sm_clock_median_mhz = static_cast<int>(median(clocks));
  all->throttle_reasons.assign(reasons.begin(), reasons.end());
  return all;
}

// Reasons outside the step that slow a GPU down. The power limit is excluded, because it is a
// property of the device and is always reached at full load.
constexpr std::array<std::string_view, 4> kSlowdowns = {
    "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"};

bool is_slowdown(const std::string& reason) {
  return std::find(kSlowdowns.begin(), kSlowdowns.end(), reason) != kSlowdowns.end();
}

// The device's state overrides the verdict on the samples, because the samples of a throttled GPU
// may show little noise.
void judge_device(const DeviceStateRecord& state, TimeQuality& quality) {
  if (state.allocator_retries.value_or(0) > 0) {
    quality.verdict = "thrashing";
    quality.reasons.push_back("the allocator ran out of memory " +
                              std::to_string(*state.allocator_retries) +
                              " times and retried after emptying its cache; the point is too close "
                              "to the memory limit for its time to be meaningful");
  }
  if (state.other_processes.value_or(0) > 0) {
    quality.verdict = "shared_device";
    quality.reasons.push_back(std::to_string(*state.other_processes) +
                              " other processes used the GPU; stop them and measure again");
  }
  for (const std::string& reason : state.throttle_reasons) {
    if (!is_slowdown(reason)) continue;
    quality.verdict = "throttled";
    quality.reasons.push_back("the GPU slowed itself down: " + reason +
                              "; check its cooling and power, then measure again");
  }
  if (const int repeats = state.round_repeats.value_or(0); repeats > 0) {
    quality.reasons.push_back(std::to_string(repeats) +
                              (repeats == 1 ? " round was" : " rounds were") +
                              " measured again, because the GPU was throttled or shared");
  }
}

}  // namespace

TimeRecord summarize_rounds(const std::vector<TimedRound>& rounds) {
  TimeRecord time;
  std::map<std::string, std::vector<double>> phases;
  for (const TimedRound& round : rounds) {
    time.samples.insert(time.samples.end(), round.samples.begin(), round.samples.end());
    time.starts.insert(time.starts.end(), round.starts.begin(), round.starts.end());
    for (const auto& [phase, duration] : round.phases) {
      phases[phase].push_back(static_cast<double>(duration.count()));
    }
  }
  if (!rounds.empty()) {
    time.repeatable_bits = rounds.front().repeatable_bits;
    time.replayed = rounds.front().replayed;
  }
  for (const auto& [phase, medians] : phases) time.phases[phase] = nanoseconds(median(medians));
  summarize_classes(rounds, time);
  if (!rounds.empty()) time.attention_backend = rounds.front().attention_backend;
  for (const TimedRound& round : rounds) {
    keep_most(time.peak_requested, round.peak_requested);
    keep_most(time.peak_allocated, round.peak_allocated);
    keep_most(time.peak_reserved, round.peak_reserved);
  }
  const Rounds samples = rounds_of(time);
  const Estimate step = median_over_rounds(samples);
  time.step_median = nanoseconds(step.value);
  if (step.interval) {
    time.step_interval = {nanoseconds(step.interval->low), nanoseconds(step.interval->high)};
  }
  std::vector<double> all;
  for (const std::vector<double>& round : samples)
    all.insert(all.end(), round.begin(), round.end());
  time.step_mad = nanoseconds(median_absolute_deviation(all));
  const QualityReport quality = judge_quality(samples);
  time.quality = TimeQuality{std::string(to_string(quality.verdict)), quality.noise_ratio,
                             quality.drift_ratio, quality.reasons, count_outliers(samples)};
  time.device_state = summarize_states(rounds);
  if (time.device_state) judge_device(*time.device_state, *time.quality);
  return time;
}

bool is_disturbed(const TimedRound& round) {
  if (!round.device_state) return false;
  const std::vector<std::string>& reasons = round.device_state->throttle_reasons;
  return round.device_state->other_processes.value_or(0) > 0 ||
         std::any_of(reasons.begin(), reasons.end(), is_slowdown);
}

StepRatioRecord ratio_to(const std::string& reference_policy, const TimeRecord& time,
                         const TimeRecord& reference, double floor) {
  const Estimate ratio = paired_ratio(rounds_of(time), rounds_of(reference));
  StepRatioRecord record;
  record.reference = reference_policy;
  record.ratio = ratio.value;
  if (ratio.interval) record.interval = {{ratio.interval->low, ratio.interval->high}};
  record.verdict = std::string(to_string(judge_ratio(ratio, floor)));
  return record;
}

Rounds rounds_of(const TimeRecord& time) {
  Rounds rounds;
  for (const auto& samples : time.samples) {
    std::vector<double>& round = rounds.emplace_back();
    for (const std::chrono::nanoseconds sample : samples) {
      round.push_back(static_cast<double>(sample.count()));
    }
  }
  return rounds;
}

}  // namespace rematch
