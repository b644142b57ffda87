#include "policies/trace/measured_profile.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "policies/trace/accumulation.h"
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

// Computes `figure`, such as a median, of each op's samples. The samples of an op are its values in
// every step and in all layers of its type.
template <class Step, class Value, class Figure>
std::vector<Value> figures_by_op(const std::vector<TypedSpan>& spans,
                                 const std::vector<Step>& steps,
                                 std::vector<Value> Step::*samples_of, const Figure& figure) {
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
        for (const Step& step : steps) samples.push_back((step.*samples_of)[other.first + offset]);
      }
      own = figure(std::move(samples));
    }
  }
  return result;
}

Duration above(const std::vector<Duration>& whole, const std::vector<Duration>& parts) {
  return std::max(Duration{},
                  median(whole) - std::accumulate(parts.begin(), parts.end(), Duration{}));
}

// Throws std::invalid_argument unless each step has as many ops as the trace.
template <class Step>
void require_ops(const std::vector<Step>& steps, std::size_t num_forward,
                 std::size_t num_backward) {
  for (const Step& step : steps) {
    if (step.forward.size() == num_forward && step.backward.size() == num_backward) continue;
    throw std::invalid_argument("a watched step has " + std::to_string(step.forward.size()) +
                                " forward and " + std::to_string(step.backward.size()) +
                                " backward ops, but its trace has " + std::to_string(num_forward) +
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
    throw std::invalid_argument("a watched step has kernel counts for " +
                                std::to_string(step.kernels.size()) + " ops, not for " +
                                std::to_string(num_counted));
  }
  require_ops(steps.weighed, num_forward, num_backward);
}

// Converts a profile of one micro-batch of the trace to a step, if the trace has several.
void take_micro_batches(const Trace& trace, Profile& profile) {
  const std::string dimension(kAccumulate);
  if (micro_batches(trace) == 1 || profile.dimensions.contains(dimension)) return;
  if (profile.trace_sha256 != trace_sha256(trace)) return;
  profile.dimensions[dimension] = micro_batches(trace);
  repeat_micro_batch(profile, micro_batches(trace));
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
  using Ops = TimedSteps::Ops;
  using Temporaries = TimedSteps::Temporaries;
  profile.forward = figures_by_op(forward, steps.watched, &Ops::forward, median);
  profile.backward = figures_by_op(backward, steps.watched, &Ops::backward, median);
  if (!steps.weighed.empty()) {
    profile.forward_temporary =
        figures_by_op(forward, steps.weighed, &Temporaries::forward, most<Bytes>);
    profile.backward_temporary =
        figures_by_op(backward, steps.weighed, &Temporaries::backward, most<Bytes>);
  }
  // Equal layers launch the same kernels in all steps, unless a library may choose between one
  // kernel and two. The maximum covers both cases.
  if (!steps.watched.front().kernels.empty()) {
    profile.forward_kernels =
        figures_by_op(forward, steps.watched, &Ops::kernels, most<std::int32_t>);
  }
  profile.forward_between_ops = above(steps.forward, profile.forward);
  profile.backward_between_ops = above(steps.backward, profile.backward);
  profile.optimizer = median(steps.optimizer);
  return profile;
}

Profile profile_for_trace(Profile profile, const Trace& trace) {
  take_micro_batches(trace, profile);
  if (!profile.trace_sha256.empty() || profile.ops_sha256 != ops_sha256(trace)) return profile;
  if (profile.forward.size() != trace.ops.size() ||
      profile.backward.size() != num_ops(trace.backward)) {
    return profile;
  }
  TimedSteps steps;
  steps.watched.push_back({profile.forward, profile.backward, {}});
  steps.forward = {profile.forward_time()};
  steps.backward = {profile.backward_time()};
  steps.optimizer = {profile.optimizer};
  Profile whole = measured_profile(trace, profile.device, steps);
  whole.num_steps = profile.num_steps;
  whole.card = profile.card;
  whole.attention_backend = profile.attention_backend;
  whole.repeatable_bits = profile.repeatable_bits;
  return whole;
}

}  // namespace rematch
