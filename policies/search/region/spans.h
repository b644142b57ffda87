// A trace as the search sees it: a row of spans, which are blocks and the parts between them. Each
// span has a kind, and spans of one kind have the same options. Also defines the search space.
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

// Ops [first, end) of one span or of several adjacent spans, counted from their first op.
struct LocalRange {
  int first = 0;
  int end = 0;
  bool operator==(const LocalRange&) const = default;
};

struct Span {
  OpRange range;
  // Scope of the block; absent: between blocks, which has a single option.
  std::optional<ScopeId> scope;
  OptionalIndex block;  // index into Trace::blocks; absent like `scope`
  int kind = 0;
  bool is_repeated = false;  // the block runs several times in a step
  Bytes born;                // bytes made by later spans' backward when this one's begins
  bool is_block() const { return scope.has_value(); }
};

struct SpanMap {
  TraceIndex index;
  std::vector<Span> spans;         // ordered as in forward; together they cover all ops
  std::vector<int> first_of_kind;  // indexed by kind: its first span
  // The span that pays for a storage if the storage is held. Absent for storages that are alive
  // anyway. The first span that reads the storage pays, because it holds the storage in any case.
  // If several spans read it and a span between blocks made it, the maker pays.
  IdTable<StorageId, OptionalIndex> owner;
  IdTable<StorageId, bool> is_shared;  // several spans read it, so its maker always holds it
  // No span except its owner ever holds it from forward to backward, whatever is chosen.
  IdTable<StorageId, bool> is_alone;
  Bytes most_born;  // most bytes that backward has made at any time
};

// Counts how often each scope that contains ops opens, by path. A path that opens several times
// does not name a single opening.
std::map<std::string_view, int> num_openings(const Trace& trace);

// The rule for a block that runs several times in a step. kAreBlocks: each run is a block, as a
// plan counts the runs. kNoBlocks: no run is a block, because wrapping a module treats all runs
// alike.
enum class Repeats : std::uint8_t { kAreBlocks, kNoBlocks };

// Whether spans may offload what they hold. If they may, all spans of a kind can offload the same
// storages.
enum class Offloading : std::uint8_t { kNever, kAllowed };

SpanMap make_spans(const Trace& trace, const OpTimes& times, Repeats repeats = Repeats::kAreBlocks,
                   Offloading offloading = Offloading::kNever);

// Returns the most bytes that backward has made at once between the last event of other packs and
// the first event of the graph's packs.
Bytes most_born_before(const Trace& trace, const RegionGraph& graph);

enum class Reach : std::uint8_t { kAll, kHull };  // all options, or only those on the convex hull

struct SearchSpace {
  Schedule schedule = Schedule::kOnDemand;
  OptimizerModel optimizer = OptimizerModel::kAdamW;  // its state is part of every peak
  int world = 1;     // above 1: the trace is of a whole model, sharded by sharding.h
  bool cuts = true;  // a block may be cut into several regions at scope boundaries
  // Restricts plans to what torch.utils.checkpoint can run on modules (policies/export). Each
  // region is one scope, and no region keeps a random draw before one that it repeats.
  bool whole_modules = false;
  // The most blocks in one region. Absent: 2 sqrt(all blocks), or 4 with kHull.
  std::optional<int> most_in_segment;
  Reach reach = Reach::kAll;
  // Drops an option of a block that is faster than a smaller one by less than this share of the
  // block's recompute time. 0 keeps all options.
  double resolution_ratio = 0.005;
  // The link to the host, over which blocks and segments may offload what they hold. Absent:
  // nothing is offloaded. Copies count in full, as if no compute hid them.
  std::optional<HostLink> offload;
  // The number of save sets on a block's hull that may be offloaded.
  std::size_t most_offloaded_sets = 4;
  // Polled between work items. Once it returns true, the search skips what a front does not need
  // and builds the front from what it has.
  std::function<bool()> stop;
  bool is_stopped() const { return stop && stop(); }
};

// The inputs from which the options of spans are made. They must outlive objects that use them.
struct SearchedTrace {
  const Trace& trace;
  const SpanMap& map;
  const OpTimes& times;
  const SearchSpace& space;
};

}  // namespace rematch
