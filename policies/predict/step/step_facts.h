// Facts that all simulations of one trace share: where storages are allocated and freed, which
// scope an op is in, and the graphs of regions. Equal regions share one graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policies/predict/device/sharding.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/step.h"

namespace rematch {

// A region at its place in the trace. Maps its graph's local ids to the trace.
struct StandingRegion {
  std::shared_ptr<const RegionGraph> graph;  // shared by all regions of the same behaviour
  OpRange range;
  std::vector<StorageId> storages;  // indexed by local storage
  std::vector<StorageId> inputs;    // allocated by earlier ops
  std::vector<PackId> packs;        // indexed by slot
  // The number of ops that had run when autograd dropped the last of the packs in forward. Absent:
  // backward needs the region.
  std::optional<OpId> dropped_at;
};

// Lists the storages of each op in ascending order. A storage may belong to no op.
class StoragesByOp {
 public:
  StoragesByOp(const IdTable<StorageId, std::optional<OpId>>& op_of_storage, std::size_t num_ops);
  std::span<const StorageId> at(OpId op) const {
    return {storages_.data() + first_[op], storages_.data() + first_[op + 1]};
  }

 private:
  IdTable<OpId, std::size_t> first_;  // with one more entry after the last op
  std::vector<StorageId> storages_;
};

// A saved tensor that autograd drops in forward.
struct DroppedPack {
  OpId at;
  PackId pack;
};

// A part of backward: one event of a pack, or all ops up to the next such event. Between these ops
// only backward's own bytes change, so the op with the most of them is their peak.
struct BackwardPart {
  BackwardEvent::Kind kind = BackwardEvent::Kind::kOp;
  OptionalIndex pack;      // a PackId; absent for ops
  std::int32_t first = 0;  // the trace's events [first, end)
  std::int32_t end = 0;
  std::int32_t highest = 0;  // the first event with the most other_bytes
  Bytes other_bytes;         // at that event
};

class StepSimulator::Facts {
 public:
  Facts(const Trace& traced, OptimizerModel optimizer);

  const StandingRegion& region(OpRange range);
  std::optional<ScopeId> top_scope(std::optional<ScopeId> scope) const {
    return top_of(top_scopes_, scope);
  }
  bool is_born(StorageId storage) const { return born_at[storage].has_value(); }

  const Trace& trace;
  OptimizerBytes optimizer_bytes;
  Bytes baseline;
  IdTable<StorageId, std::optional<OpId>> born_at;  // absent: made outside the step
  StoragesByOp born;
  StoragesByOp freed;  // indexed by op; the last entry is the end of forward
  IdTable<PackId, OptionalIndex> pack_storage;  // a StorageId; absent: made outside the step
  std::vector<DroppedPack> dropped;             // sorted by op
  std::vector<BackwardPart> backward_parts;
  TraceIndex index;
  std::optional<Profile> profile;
  StepTime::Duration communication{};  // from the profile, without recompute
  IdTable<OpId, Bytes> gathered;       // indexed by forward op; empty: nothing is gathered

  Bytes gathered_at(OpId op) const { return gathered.empty() ? Bytes{} : gathered[op]; }

 private:
  IdTable<ScopeId, ScopeId> top_scopes_;
  std::map<std::pair<OpId, OpId>, StandingRegion> regions_;
  std::vector<std::shared_ptr<const RegionGraph>> graphs_;
};

}  // namespace rematch
