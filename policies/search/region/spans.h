// Divides a trace into spans for the search. A span is a block, or the ops between two blocks.
// Spans of the same kind have the same options. This header also defines the search space.
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

// The ops [first, end) of one span or of several adjacent spans. Indices count from the first op of
// the first span.
struct LocalRange {
  int first = 0;
  int end = 0;
  bool operator==(const LocalRange&) const = default;
};

struct Span {
  OpRange range;
  // Scope of the block. Absent: the span is between blocks, and has a single option.
  std::optional<ScopeId> scope;
  OptionalIndex block;  // index into Trace::blocks; absent if `scope` is absent
  int kind = 0;
  bool is_repeated = false;  // true: the block runs several times in a step
  // bytes that backward of later spans has allocated when backward of this span begins
  Bytes born;
  bool is_block() const { return scope.has_value(); }
};

struct SpanMap {
  TraceIndex index;
  std::vector<Span> spans;         // spans in forward order; together they cover all ops
  std::vector<int> first_of_kind;  // indexed by kind: the first span of this kind
  // The span that counts a storage's bytes: the first span that reads the storage from outside. If
  // there is none, or if a span between blocks made the storage and several spans read it, it is
  // the span that made the storage. Absent for storages that are alive for the whole step.
  IdTable<StorageId, OptionalIndex> owner;
  // True if the owner made the storage and several spans read it. The owner then always holds it.
  IdTable<StorageId, bool> is_shared;
  // true: no option of any other span holds the storage from forward to backward
  IdTable<StorageId, bool> is_alone;
  Bytes most_born;  // the largest number of bytes that backward has allocated at any one time
};

// Returns, by path, how often each scope opens. Includes only scopes that contain ops. A path that
// opens several times is ambiguous.
std::map<std::string_view, int> times_opened(const Trace& trace);

// How to treat a block that runs several times in a step. kAreBlocks: each run is a block.
// kNoBlocks: no run is a block, because torch.utils.checkpoint treats all runs of a module alike.
enum class Repeats : std::uint8_t { kAreBlocks, kNoBlocks };

// Whether spans may offload values. With kAllowed, two spans have the same kind only if they can
// offload the same storages.
enum class Offloading : std::uint8_t { kNever, kAllowed };

SpanMap make_spans(const Trace& trace, const OpTimes& times, Repeats repeats = Repeats::kAreBlocks,
                   Offloading offloading = Offloading::kNever);

// Returns the highest number of bytes that backward has allocated just before the first event of
// the graph's packs. Looks back only to the previous event of any other pack.
Bytes most_born_before(const Trace& trace, const RegionGraph& graph);

// kAll: all options; kHull: only options on the convex hull
enum class Reach : std::uint8_t { kAll, kHull };

struct SearchSpace {
  Schedule schedule = Schedule::kOnDemand;
  OptimizerKind optimizer = OptimizerKind::kAdamW;  // optimizer whose state counts in every peak
  int world = 1;     // above 1: the trace is of a whole model, and sharding.h shards it
  bool cuts = true;  // true: a block may be cut into several regions at scope boundaries
  // If true, allows only plans that torch.utils.checkpoint can run on modules (policies/export).
  // Each region is then a single scope.
  bool whole_modules = false;
  // The maximum number of blocks in one region. Absent: 2 sqrt(all blocks), or 4 with kHull.
  std::optional<int> most_in_segment;
  Reach reach = Reach::kAll;
  // Drops an option of a block if another option has fewer bytes and is slower by at most this
  // share of the time to recompute the block. 0 keeps all options.
  double resolution_ratio = 0.005;
  // The link over which blocks and segments may offload values to the host. Absent: nothing is
  // offloaded. See Note [What hides a copy].
  std::optional<HostLink> offload;
  // The maximum number of a block's save sets that may be offloaded.
  std::size_t most_offloaded_sets = 4;
  // Polled between work items. Once it returns true, the search skips optional work and builds the
  // front from the plans found so far.
  std::function<bool()> stop;
  bool is_stopped() const { return stop && stop(); }
  // Called after each layer whose options have been combined. Combining layers takes most of the
  // time of a long search.
  std::function<void(int layers_done, int num_layers)> on_layer;
};

// The input of make_options(). All members must outlive every object that uses them.
struct SearchedTrace {
  const Trace& trace;
  const SpanMap& map;
  const OpTimes& times;
  const SearchSpace& space;
};

}  // namespace rematch
