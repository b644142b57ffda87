#include "policies/trace/ring_parts.h"

#include <algorithm>
#include <optional>

#include "policies/trace/collective.h"

namespace rematch {

bool is_part_of_ring(const TracedOp& op) {
  return op.name == kRingStep ||
         (op.group == "cp" && collective_kind(op.name) == CollectiveKind::kAllToAll);
}

std::vector<OpId> parts_of_ring(const Trace& trace, OpId last) {
  const TracedOp& end = trace.ops[last];
  if (end.name != "rematch::ring_attention" || !end.scope) return {};
  std::vector<OpId> parts;
  const auto is_part = [&](std::optional<OpId> op) {
    return op && std::find(parts.begin(), parts.end(), *op) != parts.end();
  };
  for (const OpId id : IdRange(trace.scopes[*end.scope].first_op, last)) {
    const TracedOp& op = trace.ops[id];
    const bool is_wait = collective_part(op.name) == CollectivePart::kWait && !op.inputs.empty() &&
                         is_part(trace.values[op.inputs.front().value].producer);
    if (is_part_of_ring(op) || is_wait) parts.push_back(id);
  }
  return parts;
}

}  // namespace rematch
