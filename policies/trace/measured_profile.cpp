#include "policies/trace/measured_profile.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "policies/trace/typed_stretches.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

Duration median(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2;
}

std::size_t num_ops(const std::vector<TypedStretch>& stretches) {
  return stretches.empty() ? 0 : stretches.back().first + stretches.back().length;
}

// `time(step, op)` of each step's ops.
template <class Time>
std::vector<Duration> medians(const std::vector<TypedStretch>& stretches, std::size_t num_steps,
                              const Time& time) {
  std::vector<Duration> result(num_ops(stretches));
  for (const TypedStretch& stretch : stretches) {
    for (std::size_t offset = 0; offset < stretch.length; ++offset) {
      Duration& own = result[stretch.first + offset];
      const auto first_alike =
          std::find_if(stretches.begin(), stretches.end(),
                       [&](const TypedStretch& other) { return other.type == stretch.type; });
      if (first_alike->first != stretch.first) {
        own = result[first_alike->first + offset];
        continue;
      }
      std::vector<Duration> samples;
      for (const TypedStretch& other : stretches) {
        if (other.type != stretch.type) continue;
        for (std::size_t step = 0; step < num_steps; ++step) {
          samples.push_back(time(step, other.first + offset));
        }
      }
      own = median(std::move(samples));
    }
  }
  return result;
}

Duration above(const std::vector<Duration>& whole, const std::vector<Duration>& parts) {
  return std::max(Duration{},
                  median(whole) - std::accumulate(parts.begin(), parts.end(), Duration{}));
}

void require_steps(const TimedSteps& steps, std::size_t num_forward, std::size_t num_backward) {
  if (steps.watched.empty() || steps.forward.empty() || steps.backward.empty() ||
      steps.optimizer.empty()) {
    throw std::invalid_argument("no steps were timed");
  }
  for (const TimedSteps::Ops& step : steps.watched) {
    if (step.forward.size() == num_forward && step.backward.size() == num_backward) continue;
    throw std::invalid_argument("a timed step has " + std::to_string(step.forward.size()) +
                                " forward and " + std::to_string(step.backward.size()) +
                                " backward ops, its trace " + std::to_string(num_forward) +
                                " and " + std::to_string(num_backward));
  }
}

}  // namespace

Profile measured_profile(const Trace& trace, const std::string& device, const TimedSteps& steps) {
  const SegmentedTrace segmented = cut_into_segments(trace);
  const std::vector<TypedStretch> forward = forward_stretches(segmented);
  const std::vector<TypedStretch> backward = backward_stretches(segmented);
  require_steps(steps, num_ops(forward), num_ops(backward));
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  profile.device = device;
  profile.num_steps = static_cast<int>(steps.watched.size());
  profile.forward = medians(forward, steps.watched.size(), [&](std::size_t step, std::size_t op) {
    return steps.watched[step].forward[op];
  });
  profile.backward = medians(backward, steps.watched.size(), [&](std::size_t step, std::size_t op) {
    return steps.watched[step].backward[op];
  });
  profile.forward_between_ops = above(steps.forward, profile.forward);
  profile.backward_between_ops = above(steps.backward, profile.backward);
  profile.optimizer = median(steps.optimizer);
  return profile;
}

}  // namespace rematch
