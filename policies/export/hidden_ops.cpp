#include "policies/export/hidden_ops.h"

#include <algorithm>
#include <vector>

#include "policies/predict/region/trace_index.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

bool has_hidden_effect(const TracedOp& op, const HiddenEffects& hidden) {
  if (op.name == kOpaqueOp || is_replay_only(op.name)) return true;
  if (std::find(hidden.kept_ops.begin(), hidden.kept_ops.end(), op.name) != hidden.kept_ops.end()) {
    return true;
  }
  return std::any_of(hidden.silent_writers.begin(), hidden.silent_writers.end(),
                     [&](const SilentWriter& writer) { return writer.op == op.name; });
}

}  // namespace

std::optional<std::string> hidden_op_problem(const Trace& trace, OpRange range) {
  for (const OpId id : range.ids()) {
    const TracedOp& op = trace.ops[id];
    if (!has_hidden_effect(op, trace.hidden)) continue;
    return op.name + " (op " + std::to_string(id - range.first) +
           ") has effects that torch does not see, and torch's recompute would repeat them; run "
           "the plan with rematch.Checkpoint, or make a plan that leaves out this layer";
  }
  return std::nullopt;
}

std::optional<std::string> hidden_op_problem(const Trace& trace, const Plan& plan) {
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto problem = hidden_op_problem(trace, ranges[i]);
    if (problem) return "region " + plan.regions[i].first_scope + ": " + *problem;
  }
  return std::nullopt;
}

}  // namespace rematch
