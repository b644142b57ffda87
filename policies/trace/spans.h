// Cuts a trace into spans, one per block and one between neighbours, whose ids are relative to
// the span. Layers that do the same become equal, so a file stores each distinct type once.
// Joining gives back exactly the trace that was cut, with or without blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// One span of every table of a trace. An id in it is counted from the span's first, or is
// outside_id(k) for the k-th entry of the span's list of outside ids. Op positions (first_op,
// end_op, at_op) are counted from the span's first op. Paths below the span's own begin with
// a dot, the span's own is ".".
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

// What replaces each id of a span. A position is an op that a scope or a pack is counted by.
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

// A place where a type stands in the trace, with what its outside ids are there.
struct TraceSpan {
  int type = 0;
  std::string path;  // of the block's scope; empty between blocks
  std::vector<OpId> outside_ops;
  std::vector<ValueId> outside_values;
  std::vector<StorageId> outside_storages;
  std::vector<ScopeId> outside_scopes;
};

// A span of backward: packs are counted from `first_pack`, scopes from `first_scope`, which a
// scope may lie before, and bytes are the change from the event before.
struct BackwardRun {
  int type = 0;
  PackId first_pack;
  ScopeId first_scope;
};

struct SpannedTrace {
  std::vector<SpanType> types;
  std::vector<TraceSpan> spans;  // in order; together all of the trace's tables
  std::vector<std::vector<BackwardEvent>> backward_types;
  std::vector<BackwardRun> backward;
};

// `trace` must be valid (trace_check.h).
SpannedTrace cut_into_spans(const Trace& trace);

// Fills ops, values, storages, scopes, packs and backward of `trace`. Throws FormatError if an id
// is in no table, or if there is more than any step can be (a file that repeats a large type).
void join_spans(const SpannedTrace& spanned, Trace& trace);

// The ops of a pass by the spans that a trace is cut into (spans.h). Spans of one type
// do the same.

// Ops [first, first + length) of forward, or of the ops of backward.
struct TypedSpan {
  int type = 0;
  std::size_t first = 0;
  std::size_t length = 0;
};

std::vector<TypedSpan> forward_spans(const SpannedTrace& spanned);
std::vector<TypedSpan> backward_spans(const SpannedTrace& spanned);

}  // namespace rematch
