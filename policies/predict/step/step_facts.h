// Facts that all simulations of one trace share: when storages are allocated and freed, which scope
// an op is in, and the graphs of regions. Equal regions share one graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policies/predict/device/sharding.h"
#include "policies/predict/pipeline/schedule.h"
#include "policies/predict/pipeline/split_backward.h"
#include "policies/predict/region/late_copies.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/step.h"

namespace rematch {

// A region's op range in the trace, its graph, and the trace ids of the graph's storages and slots.
struct TraceRegion {
  std::shared_ptr<const RegionGraph> graph;  // shared by all regions with the same behaviour
  OpRange range;
  std::vector<StorageId> storages;  // indexed by local storage
  std::vector<StorageId> inputs;    // storages that the region reads and that earlier ops allocated
  std::vector<PackId> packs;        // indexed by slot
  // number of ops that had run when autograd dropped the region's last pack in forward; absent:
  // backward needs the region
  std::optional<OpId> dropped_at;
  std::vector<LateCopy> late_copies;
};

// Groups storages by op, for example by the op that allocates them. A storage without an op is in
// no group.
class StoragesByOp {
 public:
  StoragesByOp(const IdTable<StorageId, std::optional<OpId>>& op_of_storage, std::size_t num_ops);
  std::span<const StorageId> at(OpId op) const {
    return {storages_.data() + first_[op], storages_.data() + first_[op + 1]};
  }

 private:
  IdTable<OpId, std::size_t> first_;  // has one additional entry after the last op
  std::vector<StorageId> storages_;
};

// A saved tensor that autograd drops before backward.
struct DroppedPack {
  OpId at;
  PackId pack;
};

// One event of a pack, or all ops between two such events. Recomputed bytes do not change during
// these ops, so the peak is at the op where backward has allocated the most bytes.
struct BackwardPart {
  BackwardEvent::Kind kind = BackwardEvent::Kind::kOp;
  OptionalIndex pack;      // index of a PackId; absent for ops
  std::int32_t first = 0;  // start of the trace's events [first, end)
  std::int32_t end = 0;
  std::int32_t highest = 0;  // first event with the most other_bytes
  Bytes other_bytes;         // backward's bytes at event `highest`
};

// A stage of a pipeline in its schedule.
struct ScheduledStage {
  std::vector<PassMoment> moments;  // of the stage's rank
  std::size_t position = 0;         // position among the stages of the rank
  std::size_t num_stages = 1;       // number of stages of the rank
};

// Backward of a stage without its weight passes: see pipeline/split_backward.h.
struct SplitBackward {
  std::vector<WeightGradient> waiting;
  Bytes weight_gradients;          // sum of the stored gradients
  std::vector<Bytes> for_weights;  // bytes_left_for_weights()
  // The storages of saved inputs that forward makes, each with one waiting pack.
  std::vector<std::pair<StorageId, PackId>> inputs;
  // For the last pack of such a storage that backward releases: the storage.
  IdTable<PackId, OptionalIndex> last_release;
  std::vector<BackwardEvent> backward;  // Trace::backward without the weight passes
};

class StepSimulator::Facts {
 public:
  Facts(const Trace& traced, OptimizerKind optimizer, std::int64_t round);

  const TraceRegion& region(OpRange range);
  std::optional<ScopeId> top_scope(std::optional<ScopeId> scope) const {
    return top_of(top_scopes_, scope);
  }
  bool is_born(StorageId storage) const { return born_at[storage].has_value(); }

  const Trace& trace;
  OptimizerBytes optimizer_bytes;
  Bytes baseline;
  // op that makes the storage; absent: the storage was made outside the step
  IdTable<StorageId, std::optional<OpId>> born_at;
  StoragesByOp born;
  StoragesByOp freed;  // indexed by op; the last entry is the end of forward
  // id of the pack's storage; absent: the storage was made outside the step
  IdTable<PackId, OptionalIndex> pack_storage;
  std::vector<DroppedPack> dropped;  // sorted by op
  std::vector<BackwardPart> backward_parts;
  // Backward of a pipeline stage's first micro-batch, with the bytes of that micro-batch. Empty for
  // other traces, and for a step of one micro-batch.
  std::vector<BackwardEvent> first_backward;
  std::vector<BackwardPart> first_parts;
  std::optional<ScheduledStage> scheduled;  // present for a stage of a pipeline
  std::optional<SplitBackward> split;       // present if the schedule splits backward
  TraceIndex index;
  LateCopies late_copies;
  std::optional<Profile> profile;
  std::optional<HostLink> link;
  StepTime::Duration communication{};  // communication time of the profile, without recompute
  IdTable<OpId, Bytes> gathered;       // indexed by forward op; empty: nothing is gathered

  // Returns backward of the micro-batches after the first.
  const std::vector<BackwardEvent>& backward() const {
    return split ? split->backward : trace.backward;
  }
  Bytes gathered_at(OpId op) const { return gathered.empty() ? Bytes{} : gathered[op]; }

 private:
  void set_stage();

  IdTable<ScopeId, ScopeId> top_scopes_;
  std::map<std::pair<OpId, OpId>, TraceRegion> regions_;
  std::vector<std::shared_ptr<const RegionGraph>> graphs_;
};

}  // namespace rematch
