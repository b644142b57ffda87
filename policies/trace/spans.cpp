#include "policies/trace/spans.h"

namespace rematch {

void replace_ids(SpanType& type, const SpanIds& ids) {
  const auto replace = [](auto& id, const auto& replacement) {
    if (id) id = replacement(*id);
  };
  for (TracedOp& op : type.ops) {
    replace(op.scope, ids.scope);
    for (TracedUse& use : op.inputs) use.value = ids.value(use.value);
    for (ValueId& output : op.outputs) output = ids.value(output);
    for (StorageId& written : op.writes) written = ids.storage(written);
    for (StorageId& written : op.overwrites) written = ids.storage(written);
    for (ValueId& copied : op.copies) copied = ids.value(copied);
  }
  for (TracedValue& value : type.values) {
    replace(value.producer, ids.op);
    value.storage = ids.storage(value.storage);
  }
  for (TracedStorage& storage : type.storages) replace(storage.freed_at, ids.op);
  for (TracedScope& scope : type.scopes) {
    replace(scope.parent, ids.scope);
    scope.first_op = ids.position(scope.first_op);
    scope.end_op = ids.position(scope.end_op);
  }
  for (TracedPack& pack : type.packs) {
    pack.value = ids.value(pack.value);
    pack.at_op = ids.position(pack.at_op);
    replace(pack.dropped_at, ids.position);
  }
}

std::vector<TypedSpan> forward_spans(const SpannedTrace& spanned) {
  std::vector<TypedSpan> spans;
  std::size_t first = 0;
  for (const TraceSpan& span : spanned.spans) {
    const auto length = spanned.types[static_cast<std::size_t>(span.type)].ops.size();
    spans.push_back({span.type, first, length});
    first += length;
  }
  return spans;
}

std::vector<TypedSpan> backward_spans(const SpannedTrace& spanned) {
  std::vector<TypedSpan> spans;
  std::size_t first = 0;
  for (const BackwardRun& run : spanned.backward) {
    const auto& events = spanned.backward_types[static_cast<std::size_t>(run.type)];
    const std::size_t length = num_ops(events);
    spans.push_back({run.type, first, length});
    first += length;
  }
  return spans;
}

}  // namespace rematch
