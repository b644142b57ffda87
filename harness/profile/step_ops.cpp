#include "harness/profile/step_ops.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "policies/trace/trace_op.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

// One pass of one step: the ops in the order of their calls.
struct TimedPass {
  std::vector<const std::string*> names;
  std::vector<Duration> times;
  std::vector<std::int32_t> kernels;
};

TimedPass pass_of(const std::vector<OpCall>& calls, const KernelUse& use, int step, Phase phase) {
  TimedPass pass;
  for (std::size_t index = 0; index < calls.size(); ++index) {
    if (calls[index].step != step || calls[index].phase != phase) continue;
    pass.names.push_back(&calls[index].op);
    pass.times.push_back(use.by_call[index]);
    pass.kernels.push_back(use.kernels_by_call[index]);
  }
  return pass;
}

// Throws unless the pass is the trace's.
TimedPass checked(TimedPass pass, const std::vector<const std::string*>& traced,
                  const std::string& phase) {
  require_same_ops(pass.names, traced, phase, "the GPU");
  return pass;
}

}  // namespace

std::vector<const std::string*> forward_names(const Trace& trace) {
  std::vector<const std::string*> names;
  for (const TracedOp& op : trace.ops) names.push_back(&op.name);
  return names;
}

std::vector<const std::string*> backward_names(const Trace& trace) {
  std::vector<const std::string*> names;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) names.push_back(&event.op);
  }
  return names;
}

void require_same_ops(const std::vector<const std::string*>& ran,
                      const std::vector<const std::string*>& traced, const std::string& phase,
                      const std::string& device) {
  const std::size_t most = std::max(ran.size(), traced.size());
  for (std::size_t index = 0; index < most; ++index) {
    const bool both = index < ran.size() && index < traced.size();
    if (both && is_same_op(*ran[index], *traced[index])) continue;
    const auto name_in = [index](const std::vector<const std::string*>& names) {
      return index < names.size() ? *names[index] : "missing";
    };
    throw std::runtime_error("op " + std::to_string(index) + " of " + phase + " is " +
                             name_in(ran) + " on " + device + " and " + name_in(traced) +
                             " in the model's trace; its ops depend on data, so it has no profile");
  }
}

std::vector<TimedSteps::Ops> times_of_steps(const Activity& activity,
                                            const std::vector<OpCall>& calls, const Trace& trace,
                                            int num_steps) {
  const KernelUse use = attribute(activity, calls);
  if (use.invalid) {
    throw std::runtime_error("the kernels that were recorded do not add up: " + *use.invalid);
  }
  const std::vector<const std::string*> forward = forward_names(trace);
  const std::vector<const std::string*> backward = backward_names(trace);
  std::vector<TimedSteps::Ops> steps;
  for (int step = 0; step < num_steps; ++step) {
    TimedPass first = checked(pass_of(calls, use, step, Phase::kForward), forward, "forward");
    TimedPass second = checked(pass_of(calls, use, step, Phase::kBackward), backward, "backward");
    steps.push_back({std::move(first.times), std::move(second.times), std::move(first.kernels)});
  }
  return steps;
}

}  // namespace rematch
