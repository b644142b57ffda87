// A trace as the search sees it: a row of spans, blocks and what lies between them, each of a
// kind. Spans of one kind have the same options.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

using OpTimes = std::vector<std::chrono::nanoseconds>;  // by OpId

struct Span {
  OpRange range;
  ScopeId scope = kNone;  // the block's; kNone: between blocks, so it has one option only
  int block = kNone;      // index into Trace::blocks
  int kind = 0;
  Bytes born;  // by later spans' backward, when this one's begins
};

struct SpanMap {
  std::vector<Span> spans;         // in forward order; together all ops
  std::vector<int> first_of_kind;  // by kind: a span
  // By storage: the span that pays for it if it holds it, kNone for what is alive anyway. What
  // one span makes and the next reads is the next one's, which holds it in any case; what
  // several read is the maker's.
  std::vector<int> owner;
  std::vector<bool> is_shared;  // by storage: several spans read it, so the owner always holds it
  // By storage: nobody but its owner ever holds it from forward to backward, whatever is chosen.
  std::vector<bool> is_alone;
  Bytes most_born;                      // by backward, at any time
  std::vector<PackEvents> pack_events;  // to make graphs of regions with
};

// How often each scope with ops in it opens, by path: one that opens several times is no name for
// one of its openings.
std::map<std::string_view, int> num_openings(const Trace& trace);

SpanMap make_spans(const Trace& trace, const OpTimes& times);

}  // namespace rematch
