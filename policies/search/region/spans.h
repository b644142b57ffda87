// A trace as the search sees it: a row of spans, blocks and what lies between them, each of a
// kind. Spans of one kind have the same options. And what a search may do with them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/device/links.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/optimizer_bytes.h"
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
  bool is_repeated = false;  // the block runs several times in a step
  Bytes born;                // by later spans' backward, when this one's begins
  bool is_block() const { return scope.has_value(); }
};

struct SpanMap {
  TraceIndex index;
  std::vector<Span> spans;         // in forward order; together all ops
  std::vector<int> first_of_kind;  // by kind: a span
  // The span that pays for a storage if it holds it; absent for what is alive anyway. What
  // one span makes and the next reads is the next one's, which holds it in any case; what
  // several read is the maker's.
  IdTable<StorageId, OptionalIndex> owner;
  IdTable<StorageId, bool> is_shared;  // several spans read it, so the owner always holds it
  // Nobody but its owner ever holds it from forward to backward, whatever is chosen.
  IdTable<StorageId, bool> is_alone;
  Bytes most_born;  // by backward, at any time
};

// How often each scope with ops in it opens, by path: one that opens several times is no name for
// one of its openings.
std::map<std::string_view, int> num_openings(const Trace& trace);

// Whether each run of a block that runs several times in a step is a block of its own, or none. A
// plan counts the runs; what wraps a module treats all of them alike.
enum class Repeats : std::uint8_t { kAreBlocks, kNoBlocks };

// Whether spans may leave what they hold to the host. If they may, all spans of a kind can leave
// the same.
enum class Offloading : std::uint8_t { kNever, kAllowed };

SpanMap make_spans(const Trace& trace, const OpTimes& times, Repeats repeats = Repeats::kAreBlocks,
                   Offloading offloading = Offloading::kNever);

// The most bytes that backward has born at once between the last event of other packs and the first
// of the graph's.
Bytes most_born_before(const Trace& trace, const RegionGraph& graph);

enum class Reach : std::uint8_t { kAll, kHull };  // all options, or those on the convex hull

struct SearchSpace {
  Schedule schedule = Schedule::kOnDemand;
  OptimizerModel optimizer = OptimizerModel::kAdamW;  // whose state is part of every peak
  int world = 1;     // above 1: the trace is of a whole model, shared out by sharding.h
  bool cuts = true;  // of a block into several regions at scope boundaries
  // Each region is one scope, and none keeps a draw before one that it draws again: what
  // torch.utils.checkpoint can run on modules (policies/export).
  bool whole_modules = false;
  // Blocks that may share one region. None: 2 sqrt(all blocks), on the hull 4.
  std::optional<int> most_in_segment;
  Reach reach = Reach::kAll;
  // Options of a block that are less than this share of its recompute time faster than a smaller
  // one are left out. 0: all options.
  double resolution_ratio = 0.005;
  // The link to the host over which blocks and segments may offload what they hold. None: they do
  // not. Copies count with nothing of them hidden.
  std::optional<HostLink> offload;
  // How many of the save sets on a block's hull may be offloaded.
  std::size_t most_offloaded_sets = 4;
  // Asked between two parts of the work. Once it says true, the rest is left out that a front does
  // not need, and what there is makes the front.
  std::function<bool()> stop;
  bool is_stopped() const { return stop && stop(); }
};

// All that the ways to run spans are made from, which must outlive them.
struct SearchedTrace {
  const Trace& trace;
  const SpanMap& map;
  const OpTimes& times;
  const SearchSpace& space;
};

}  // namespace rematch
