#include "harness/profile/step_ops.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "policies/trace/accumulation.h"
#include "policies/trace/trace_op.h"

namespace rematch {
std::vector<const std::string*> forward_names(const Trace& trace) {
  std::vector<const std::string*> names;
  for (const TracedOp& op : trace.ops) {
    if (!is_replay_only(op.name)) names.push_back(&op.name);
  }
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
    throw std::runtime_error(
        "op " + std::to_string(index) + " of " + phase + " is " + name_in(ran) + " on " + device +
        " and " + name_in(traced) +
        " in the model's trace; the ops depend on data, so they cannot be profiled");
  }
}

namespace {

// Removes the figures of all micro-batches except the last, which is the one that a trace lists.
// The micro-batches of a step have equally many ops.
template <class Figure>
void keep_last(std::vector<Figure>& figures, std::int64_t num_micro_batches) {
  const auto num = static_cast<std::ptrdiff_t>(figures.size());
  figures.erase(figures.begin(), figures.end() - num / num_micro_batches);
}

}  // namespace

std::vector<TimedSteps::Ops> times_of_steps(const Activity& activity,
                                            const std::vector<OpCall>& calls, const Trace& trace,
                                            int num_steps) {
  const KernelUse use = attribute(activity, calls);
  if (use.invalid) {
    throw std::runtime_error("the recorded kernels are inconsistent: " + *use.invalid);
  }
  std::vector<TimedSteps::Ops> steps;
  for (int step = 0; step < num_steps; ++step) {
    StepFigures<Profile::Duration> timed;
    std::vector<std::int32_t> kernels;
    for (std::size_t index = 0; index < calls.size(); ++index) {
      const OpCall& call = calls[index];
      if (call.step != step) continue;
      if (call.phase == Phase::kForward) {
        timed.forward.push_back({&call.op, use.by_call[index]});
        kernels.push_back(use.kernels_by_call[index]);
      } else if (call.phase == Phase::kBackward) {
        timed.backward.push_back({&call.op, use.by_call[index]});
      }
    }
    const std::int64_t num = micro_batches(trace);
    keep_last(timed.forward, num);
    keep_last(kernels, num);
    keep_last(timed.backward, num);
    steps.push_back(of_trace<TimedSteps::Ops>(timed, trace, "the GPU"));
    steps.back().kernels = with_replay_only_ops(kernels, trace);
  }
  return steps;
}

}  // namespace rematch
