// The ops of a measured step beside those of the model's trace: what was measured op by op belongs
// to the trace only if both are the same. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "harness/profile/activity.h"
#include "harness/profile/attribution.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// A figure of an op that ran: its time, or the bytes that it holds inside.
template <class Figure>
struct OpFigure {
  const std::string* name = nullptr;  // outlives the figure
  Figure figure{};
};

// Those of a step, in the order of its ops.
template <class Figure>
struct StepFigures {
  std::vector<OpFigure<Figure>> forward;
  std::vector<OpFigure<Figure>> backward;
};

// The names of a trace's ops, in the order that a step runs them.
std::vector<const std::string*> forward_names(const Trace& trace);
std::vector<const std::string*> backward_names(const Trace& trace);

// Throws std::runtime_error that names the first op which differs. `phase` and `device` are for the
// message: "forward", "the CPU".
void require_same_ops(const std::vector<const std::string*>& ran,
                      const std::vector<const std::string*>& traced, const std::string& phase,
                      const std::string& device);

// The figures of a pass, whose ops must be the traced ones; see require_same_ops().
template <class Figure>
std::vector<Figure> figures_of(const std::vector<OpFigure<Figure>>& pass,
                               const std::vector<const std::string*>& traced,
                               const std::string& phase, const std::string& device) {
  std::vector<const std::string*> ran;
  std::vector<Figure> figures;
  for (const OpFigure<Figure>& op : pass) {
    ran.push_back(op.name);
    figures.push_back(op.figure);
  }
  require_same_ops(ran, traced, phase, device);
  return figures;
}

// The step as TimedSteps has it. Throws unless it ran the trace's ops.
template <class OfStep, class Figure>
OfStep of_trace(const StepFigures<Figure>& step, const Trace& trace, const std::string& device) {
  return {figures_of(step.forward, forward_names(trace), "forward", device),
          figures_of(step.backward, backward_names(trace), "backward", device)};
}

// Times of each recorded step's ops: of all kernels and transfers that a call launched, on the
// device's clock; and how many kernels those of forward launched. `calls` are of steps 0 to
// num_steps - 1, without checkpointing. Throws std::runtime_error where activity was lost or
// belongs to nobody, or a step is not the trace's.
std::vector<TimedSteps::Ops> times_of_steps(const Activity& activity,
                                            const std::vector<OpCall>& calls, const Trace& trace,
                                            int num_steps);

}  // namespace rematch
