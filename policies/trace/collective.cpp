#include "policies/trace/collective.h"

#include <algorithm>

namespace rematch {
namespace {

constexpr std::string_view kFunctional = "_c10d_functional::";

}  // namespace

std::optional<CollectiveKind> collective_kind(std::string_view name) {
  if (!name.starts_with(kFunctional)) return std::nullopt;
  name.remove_prefix(kFunctional.size());
  for (const CollectiveKind kind : kAll<CollectiveKind>) {
    if (name.starts_with(to_string(kind))) return kind;
  }
  return std::nullopt;
}

bool is_parameter_gather(const Trace& trace, const TracedOp& op) {
  return collective_kind(op.name) == CollectiveKind::kAllGather && !op.inputs.empty() &&
         std::all_of(op.inputs.begin(), op.inputs.end(),
                     [&](const TracedUse& use) { return !trace.values[use.value].producer; });
}

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

CollectivePart collective_part(std::string_view name) {
  if (name.starts_with("_c10d_functional::wait_tensor")) return CollectivePart::kWait;
  if (name.starts_with("_c10d_functional::")) return CollectivePart::kStart;
  if (name.starts_with("c10d::")) return CollectivePart::kStartWithHandle;
  return CollectivePart::kNothing;
}

}  // namespace rematch
