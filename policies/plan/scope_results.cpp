#include "policies/plan/scope_results.h"

#include <algorithm>

namespace rematch {
namespace {

bool reads_storage(const Trace& trace, const TracedOp& op, StorageId storage) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const TracedUse& input) {
    return trace.values[input.value].storage == storage;
  });
}

// By storage the op that made it; none if it comes from outside.
IdTable<StorageId, std::optional<OpId>> makers(const Trace& trace) {
  IdTable<StorageId, std::optional<OpId>> maker(trace.storages.size());
  for (const OpId id : trace.ops.ids()) {
    const TracedOp& op = trace.ops[id];
    if (op.is_view) continue;
    for (const ValueId output : op.outputs) {
      const StorageId storage = trace.values[output].storage;
      if (!maker[storage] && !reads_storage(trace, op, storage)) maker[storage] = id;
    }
  }
  return maker;
}

}  // namespace

IdTable<OpId, bool> scope_results(
    const Trace& trace, const IdTable<ScopeId, std::optional<ScopeId>>& instance_of_scope) {
  const auto instance_of = [&](const TracedOp& op) {
    return op.scope ? instance_of_scope[*op.scope] : std::nullopt;
  };
  const IdTable<StorageId, std::optional<OpId>> maker = makers(trace);
  IdTable<OpId, bool> results(trace.ops.size(), false);
  for (const TracedOp& reader : trace.ops) {
    if (reader.is_view) continue;  // what it gives counts where it is read
    for (const TracedUse& input : reader.inputs) {
      const std::optional<OpId> made_by = maker[trace.values[input.value].storage];
      if (!made_by) continue;
      const std::optional<ScopeId> part = instance_of(trace.ops[*made_by]);
      if (part && part != instance_of(reader)) results[*made_by] = true;
    }
  }
  return results;
}

}  // namespace rematch
