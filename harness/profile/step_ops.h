// Checks that a measured step ran the ops of the model's trace. Otherwise its figures per op would
// not apply to the trace. Needs no LibTorch.
#pragma once

#include <string>
#include <vector>

#include "harness/profile/activity.h"
#include "harness/profile/attribution.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/op_class.h"
#include "policies/trace/trace.h"

namespace rematch {

// One measured figure of an op: its time, or its temporary bytes.
template <class Figure>
struct OpFigure {
  const std::string* name = nullptr;  // not owned; the string must outlive this object
  Figure figure{};
};

// The figures of a step, in the order of its ops.
template <class Figure>
struct StepFigures {
  std::vector<OpFigure<Figure>> forward;
  std::vector<OpFigure<Figure>> backward;
};

// The names of a trace's ops, in the order in which a step runs them. Leaves out ops that run only
// in recompute.
std::vector<const std::string*> forward_names(const Trace& trace);
std::vector<const std::string*> backward_names(const Trace& trace);

// Throws std::runtime_error, which names the first op that differs. `phase` and `device` appear in
// the message, for example "forward" and "the CPU".
void require_same_ops(const std::vector<const std::string*>& ran,
                      const std::vector<const std::string*>& traced, const std::string& phase,
                      const std::string& device);

// Returns the figures of a pass. The ops of the pass must be the traced ops; see
// require_same_ops().
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

// Inserts zero for each traced op that runs only in recompute.
template <class Figure>
std::vector<Figure> with_replay_only_ops(const std::vector<Figure>& ran, const Trace& trace) {
  std::vector<Figure> all;
  auto next = ran.begin();
  for (const TracedOp& op : trace.ops) {
    all.push_back(is_replay_only(op.name) ? Figure{} : *next++);
  }
  return all;
}

// Returns a step's figures in the form that TimedSteps stores. Throws unless the step ran the
// trace's ops.
template <class OfStep, class Figure>
OfStep of_trace(const StepFigures<Figure>& step, const Trace& trace, const std::string& device) {
  return {with_replay_only_ops(figures_of(step.forward, forward_names(trace), "forward", device),
                               trace),
          figures_of(step.backward, backward_names(trace), "backward", device)};
}

// Returns, for each step, the device time of each op's kernels and transfers. Also returns how many
// kernels each op of forward launched. Only the last micro-batch of a step counts. `calls` are the
// calls of steps 0 to num_steps - 1, without checkpointing. Throws std::runtime_error if activity
// was lost or is unattributed, or if the ops of a step differ from the traced ops.
std::vector<TimedSteps::Ops> times_of_steps(const Activity& activity,
                                            const std::vector<OpCall>& calls, const Trace& trace,
                                            int num_steps);

}  // namespace rematch
