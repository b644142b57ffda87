#include "policies/trace/measured_profile.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "policies/trace/spans.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

Duration median(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2;
}

std::size_t num_ops(const std::vector<TypedSpan>& spans) {
  return spans.empty() ? 0 : spans.back().first + spans.back().length;
}

template <class Value>
Value most(const std::vector<Value>& values) {
  return *std::max_element(values.begin(), values.end());
}

// `sample(step, op)` of each step's ops; of the samples of one op, in every step and in all layers
// of its type, the `figure`.
template <class Value, class Sample, class Figure>
std::vector<Value> figures_by_op(const std::vector<TypedSpan>& spans, std::size_t num_steps,
                                 const Sample& sample, const Figure& figure) {
  std::vector<Value> result(num_ops(spans));
  for (const TypedSpan& span : spans) {
    for (std::size_t offset = 0; offset < span.length; ++offset) {
      Value& own = result[span.first + offset];
      const auto first_alike =
          std::find_if(spans.begin(), spans.end(),
                       [&](const TypedSpan& other) { return other.type == span.type; });
      if (first_alike->first != span.first) {
        own = result[first_alike->first + offset];
        continue;
      }
      std::vector<Value> samples;
      for (const TypedSpan& other : spans) {
        if (other.type != span.type) continue;
        for (std::size_t step = 0; step < num_steps; ++step) {
          samples.push_back(sample(step, other.first + offset));
        }
      }
      own = figure(std::move(samples));
    }
  }
  return result;
}

std::vector<Duration> median_times(const std::vector<TypedSpan>& spans, const TimedSteps& steps,
                                   std::vector<Duration> TimedSteps::Ops::*pass) {
  return figures_by_op<Duration>(
      spans, steps.watched.size(),
      [&](std::size_t step, std::size_t op) { return (steps.watched[step].*pass)[op]; }, median);
}

std::vector<Bytes> most_bytes(const std::vector<TypedSpan>& spans, const TimedSteps& steps,
                              std::vector<Bytes> TimedSteps::Temporaries::*pass) {
  return figures_by_op<Bytes>(
      spans, steps.weighed.size(),
      [&](std::size_t step, std::size_t op) { return (steps.weighed[step].*pass)[op]; },
      most<Bytes>);
}

// Nothing if they were not counted. Layers and steps launch the same ones, but for choices of a
// library between one kernel and two.
std::optional<std::vector<std::int32_t>> most_kernels(const std::vector<TypedSpan>& spans,
                                                      const TimedSteps& steps) {
  if (steps.watched.front().kernels.empty()) return std::nullopt;
  return figures_by_op<std::int32_t>(
      spans, steps.watched.size(),
      [&](std::size_t step, std::size_t op) { return steps.watched[step].kernels[op]; },
      most<std::int32_t>);
}

Duration above(const std::vector<Duration>& whole, const std::vector<Duration>& parts) {
  return std::max(Duration{},
                  median(whole) - std::accumulate(parts.begin(), parts.end(), Duration{}));
}

// Each step that was watched, timed or weighed has the trace's ops.
template <class Step>
void require_ops(const std::vector<Step>& steps, std::size_t num_forward,
                 std::size_t num_backward) {
  for (const Step& step : steps) {
    if (step.forward.size() == num_forward && step.backward.size() == num_backward) continue;
    throw std::invalid_argument("a watched step has " + std::to_string(step.forward.size()) +
                                " forward and " + std::to_string(step.backward.size()) +
                                " backward ops, its trace " + std::to_string(num_forward) +
                                " and " + std::to_string(num_backward));
  }
}

void require_steps(const TimedSteps& steps, std::size_t num_forward, std::size_t num_backward) {
  if (steps.watched.empty() || steps.forward.empty() || steps.backward.empty() ||
      steps.optimizer.empty()) {
    throw std::invalid_argument("no steps were timed");
  }
  require_ops(steps.watched, num_forward, num_backward);
  for (const TimedSteps::Ops& step : steps.watched) {
    const std::size_t num_counted = steps.watched.front().kernels.empty() ? 0 : num_forward;
    if (step.kernels.size() == num_counted) continue;
    throw std::invalid_argument("a watched step has kernels of " +
                                std::to_string(step.kernels.size()) + " ops, not of " +
                                std::to_string(num_counted));
  }
  require_ops(steps.weighed, num_forward, num_backward);
}

}  // namespace

Profile measured_profile(const Trace& trace, const std::string& device, const TimedSteps& steps) {
  const SpannedTrace spanned = cut_into_spans(trace);
  const std::vector<TypedSpan> forward = forward_spans(spanned);
  const std::vector<TypedSpan> backward = backward_spans(spanned);
  require_steps(steps, num_ops(forward), num_ops(backward));
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  profile.device = device;
  profile.num_steps = static_cast<int>(steps.watched.size());
  profile.forward = median_times(forward, steps, &TimedSteps::Ops::forward);
  profile.backward = median_times(backward, steps, &TimedSteps::Ops::backward);
  if (!steps.weighed.empty()) {
    profile.forward_temporary = most_bytes(forward, steps, &TimedSteps::Temporaries::forward);
    profile.backward_temporary = most_bytes(backward, steps, &TimedSteps::Temporaries::backward);
  }
  profile.forward_kernels = most_kernels(forward, steps);
  profile.forward_between_ops = above(steps.forward, profile.forward);
  profile.backward_between_ops = above(steps.backward, profile.backward);
  profile.optimizer = median(steps.optimizer);
  return profile;
}

Profile profile_for_trace(Profile profile, const Trace& trace) {
  if (!profile.trace_sha256.empty() || profile.ops_sha256 != ops_sha256(trace)) return profile;
  const auto num_backward = static_cast<std::size_t>(std::count_if(
      trace.backward.begin(), trace.backward.end(),
      [](const BackwardEvent& event) { return event.kind == BackwardEvent::Kind::kOp; }));
  if (profile.forward.size() != trace.ops.size() || profile.backward.size() != num_backward) {
    return profile;
  }
  TimedSteps steps;
  steps.watched.push_back({profile.forward, profile.backward, {}});
  steps.forward = {profile.forward_time()};
  steps.backward = {profile.backward_time()};
  steps.optimizer = {profile.optimizer};
  Profile whole = measured_profile(trace, profile.device, steps);
  whole.num_steps = profile.num_steps;
  return whole;
}

}  // namespace rematch
