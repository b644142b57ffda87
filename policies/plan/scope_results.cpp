#include "policies/plan/scope_results.h"

#include <algorithm>

namespace rematch {
namespace {

bool reads_storage(const Trace& trace, const TracedOp& op, StorageId storage) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const TracedUse& input) {
    return trace.values[input.value].storage == storage;
  });
}

// By storage the op that made it; kNone for what comes from outside.
std::vector<OpId> makers(const Trace& trace) {
  std::vector<OpId> maker(trace.storages.size(), kNone);
  for (std::size_t id = 0; id < trace.ops.size(); ++id) {
    const TracedOp& op = trace.ops[id];
    if (op.is_view) continue;
    for (const ValueId output : op.outputs) {
      const StorageId storage = trace.values[output].storage;
      if (maker[storage] == kNone && !reads_storage(trace, op, storage)) {
        maker[storage] = static_cast<OpId>(id);
      }
    }
  }
  return maker;
}

}  // namespace

std::vector<bool> scope_results(const Trace& trace, const std::vector<ScopeId>& instance_of_scope) {
  const auto instance_of = [&](const TracedOp& op) {
    return op.scope == kNone ? kNone : instance_of_scope[op.scope];
  };
  const std::vector<OpId> maker = makers(trace);
  std::vector<bool> results(trace.ops.size(), false);
  for (const TracedOp& reader : trace.ops) {
    if (reader.is_view) continue;  // what it gives counts where it is read
    for (const TracedUse& input : reader.inputs) {
      const OpId made_by = maker[trace.values[input.value].storage];
      if (made_by == kNone) continue;
      const ScopeId part = instance_of(trace.ops[made_by]);
      if (part != kNone && part != instance_of(reader)) results[made_by] = true;
    }
  }
  return results;
}

}  // namespace rematch
