// Shared by all simulations of one trace: where storages are allocated and freed, which
// scope an op is in, and the graphs of regions, equal ones once.
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

// A region where it stands: what its graph's local ids are in the trace.
struct StandingRegion {
  std::shared_ptr<const RegionGraph> graph;  // of every region that behaves so
  OpRange range;
  std::vector<StorageId> storages;  // by local storage
  std::vector<StorageId> inputs;    // made by earlier ops
  std::vector<PackId> packs;        // by slot
  // The number of ops that had run when autograd had dropped the last of them in forward. Absent:
  // backward comes to the region.
  std::optional<OpId> dropped_at;
};

// Storages by the op that each belongs to, if to any; ascending.
class StoragesByOp {
 public:
  StoragesByOp(const IdTable<StorageId, std::optional<OpId>>& op_of_storage, std::size_t num_ops);
  std::span<const StorageId> at(OpId op) const {
    return {storages_.data() + first_[op], storages_.data() + first_[op + 1]};
  }

 private:
  IdTable<OpId, std::size_t> first_;  // and one behind the last
  std::vector<StorageId> storages_;
};

// A saved tensor that autograd drops in forward.
struct DroppedPack {
  OpId at;
  PackId pack;
};

// Backward as far as bytes go: an event of a pack, or all ops up to the next one. Only backward's
// own bytes change from one of these ops to another, so the op with the most of them is their peak.
struct BackwardPart {
  BackwardEvent::Kind kind = BackwardEvent::Kind::kOp;
  OptionalIndex pack;      // a PackId; of all but ops
  std::int32_t first = 0;  // the trace's events [first, end)
  std::int32_t end = 0;
  std::int32_t highest = 0;  // the first event with the most other_bytes
  Bytes other_bytes;         // there
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
  IdTable<StorageId, std::optional<OpId>> born_at;  // absent: from outside
  StoragesByOp born;
  StoragesByOp freed;                           // by op, and behind the last
  IdTable<PackId, OptionalIndex> pack_storage;  // a StorageId; absent: from outside
  std::vector<DroppedPack> dropped;             // by op
  std::vector<BackwardPart> backward_parts;
  TraceIndex index;
  std::optional<Profile> profile;
  StepTime::Duration communication{};  // by the profile, recompute left out
  IdTable<OpId, Bytes> gathered;       // of forward; empty: nothing is

  Bytes gathered_at(OpId op) const { return gathered.empty() ? Bytes{} : gathered[op]; }

 private:
  IdTable<ScopeId, ScopeId> top_scopes_;
  std::map<std::pair<OpId, OpId>, StandingRegion> regions_;
  std::vector<std::shared_ptr<const RegionGraph>> graphs_;
};

}  // namespace rematch
