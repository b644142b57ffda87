// Cuts a trace into spans: one per block, and one between neighbouring blocks. Ids inside a span
// are relative to the span. Layers with the same ops therefore become equal, and a file stores each
// distinct type once. Joining restores exactly the trace that was cut, with or without blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// The part of a trace's tables that belongs to one span. An id counts from the first id of the
// span, or is outside_id(k), which stands for the k-th entry of the span's list of outside ids. Op
// positions (first_op, end_op, at_op, dropped_at) count from the first op of the span. The path of
// the span itself is "."; paths inside it begin with a dot.
struct SpanType {
  std::vector<TracedOp> ops;
  std::vector<TracedValue> values;
  std::vector<TracedStorage> storages;
  std::vector<TracedScope> scopes;
  std::vector<TracedPack> packs;
  bool operator==(const SpanType&) const = default;
};

template <class AnyId>
constexpr AnyId outside_id(std::size_t place) {
  return AnyId(-1 - static_cast<std::int32_t>(place));
}
template <class AnyId>
constexpr bool is_outside(AnyId id) {
  return id.index < 0;
}
template <class AnyId>
constexpr std::size_t outside_place(AnyId id) {
  return static_cast<std::size_t>(-1 - id.index);
}

// Maps each kind of id in a span to its replacement. `position` maps the op positions of scopes and
// packs.
struct SpanIds {
  std::function<OpId(OpId)> op;
  std::function<ValueId(ValueId)> value;
  std::function<StorageId(StorageId)> storage;
  std::function<ScopeId(ScopeId)> scope;
  std::function<OpId(OpId)> position;
};
void replace_ids(SpanType& type, const SpanIds& ids);

inline bool has_bytes(const BackwardEvent& event) {
  return event.kind == BackwardEvent::Kind::kDemand || event.kind == BackwardEvent::Kind::kOp;
}

// One occurrence of a span type in the trace. It states what the type's outside ids mean at this
// occurrence.
struct TraceSpan {
  int type = 0;
  std::string path;  // path of the block's scope; empty between blocks
  std::vector<OpId> outside_ops;
  std::vector<ValueId> outside_values;
  std::vector<StorageId> outside_storages;
  std::vector<ScopeId> outside_scopes;
};

// A span of backward. Its packs count from `first_pack` and its scopes from `first_scope`; a scope
// may precede `first_scope`. The bytes of an event are stored as the difference from the previous
// event that has bytes.
struct BackwardRun {
  int type = 0;
  PackId first_pack;
  ScopeId first_scope;
};

struct SpannedTrace {
  std::vector<SpanType> types;
  std::vector<TraceSpan> spans;  // in order; together, the spans cover all tables of the trace
  std::vector<std::vector<BackwardEvent>> backward_types;
  std::vector<BackwardRun> backward;
};

// `trace` must be valid (trace_check.h).
SpannedTrace cut_into_spans(const Trace& trace);

// Fills ops, values, storages, scopes, packs and backward of `trace`. Throws FormatError if an id
// is not in its table. Also throws FormatError if there are more entries than any step can have,
// because a small file could repeat a large type.
void join_spans(const SpannedTrace& spanned, Trace& trace);

// A span as a range of ops: [first, first + length) of forward, or of the ops of backward. Spans of
// equal type run the same ops.
struct TypedSpan {
  int type = 0;
  std::size_t first = 0;
  std::size_t length = 0;
};

std::vector<TypedSpan> forward_spans(const SpannedTrace& spanned);
std::vector<TypedSpan> backward_spans(const SpannedTrace& spanned);

}  // namespace rematch
