#include "policies/trace/parameter_gathers.h"

#include <algorithm>

#include "policies/trace/collective.h"

namespace rematch {

std::vector<OpId> parameter_gathers(const Trace& trace, const TracedBlock& block) {
  const TracedScope& scope = trace.scopes[block.scope];
  std::vector<OpId> gathers;
  for (const OpId op : IdRange(scope.first_op, scope.end_op)) {
    if (is_parameter_gather(trace, trace.ops[op])) gathers.push_back(op);
  }
  return gathers;
}

bool blocks_gather_parameters(const Trace& trace) {
  return std::any_of(trace.blocks.begin(), trace.blocks.end(), [&](const TracedBlock& block) {
    return !parameter_gathers(trace, block).empty();
  });
}

}  // namespace rematch
