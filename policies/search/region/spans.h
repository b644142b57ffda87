// A trace as the search sees it: a row of spans, blocks and what lies between them, each of a
// kind. Spans of one kind have the same options.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

using OpTimes = IdTable<OpId, std::chrono::nanoseconds>;

// Ops [first, end) of a span, or of several side by side, counted from the first of theirs.
struct LocalRange {
  int first = 0;
  int end = 0;
  bool operator==(const LocalRange&) const = default;
};

struct Span {
  OpRange range;
  std::optional<ScopeId> scope;  // the block's; absent: between blocks, so it has one option only
  OptionalIndex block;           // into Trace::blocks, as `scope`
  int kind = 0;
  Bytes born;  // by later spans' backward, when this one's begins
  bool is_block() const { return scope.has_value(); }
};

struct SpanMap {
  std::vector<Span> spans;         // in forward order; together all ops
  std::vector<int> first_of_kind;  // by kind: a span
  // The span that pays for a storage if it holds it; absent for what is alive anyway. What
  // one span makes and the next reads is the next one's, which holds it in any case; what
  // several read is the maker's.
  IdTable<StorageId, OptionalIndex> owner;
  IdTable<StorageId, bool> is_shared;  // several spans read it, so the owner always holds it
  // Nobody but its owner ever holds it from forward to backward, whatever is chosen.
  IdTable<StorageId, bool> is_alone;
  Bytes most_born;                          // by backward, at any time
  IdTable<PackId, PackEvents> pack_events;  // to make graphs of regions with
};

// How often each scope with ops in it opens, by path: one that opens several times is no name for
// one of its openings.
std::map<std::string_view, int> num_openings(const Trace& trace);

SpanMap make_spans(const Trace& trace, const OpTimes& times);

}  // namespace rematch
