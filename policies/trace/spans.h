// Divides a trace into spans: one per block, and one between neighbouring blocks. Ids inside a span
// are relative to the start of the span, so layers with the same ops become equal, and a file
// stores each distinct span once. Joining the spans restores the original trace.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// The rows of a trace's tables that belong to one span. Ids are relative to the first id of the
// span. An id outside the span is replaced by outside_id(k) and stored as entry k of a list in
// TraceSpan. Op positions are relative to the first op of the span. The path of the span's scope is
// "."; paths inside it begin with a dot.
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

// Functions that replace each kind of id in a span. `position` replaces op positions in scopes and
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

// One occurrence of a span type in the trace, with the ids that it uses from outside the span.
struct TraceSpan {
  int type = 0;
  std::string path;  // path of the block's scope; empty between blocks
  std::vector<OpId> outside_ops;
  std::vector<ValueId> outside_values;
  std::vector<StorageId> outside_storages;
  std::vector<ScopeId> outside_scopes;
};

// One occurrence of a backward type. Pack ids in the type are relative to `first_pack`. Scope ids
// are relative to `first_scope`, which need not be the lowest scope. An event's bytes are stored as
// the difference from the previous event that has bytes.
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
// is not in its table, or if a type is repeated so often that no step could have so many entries.
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
