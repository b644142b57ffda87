// Shared by all simulations of one trace: where storages are allocated and freed, which
// scope an op is in, and the graphs of regions, equal ones once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/predict/step/step.h"

namespace rematch {

// A region where it stands: what its graph's local ids are in the trace.
struct StandingRegion {
  std::shared_ptr<const RegionGraph> graph;  // of every region that behaves so
  OpRange range;
  std::vector<StorageId> storages;  // by local storage
  std::vector<StorageId> inputs;    // made by earlier ops
  std::vector<PackId> packs;        // by slot
};

// Ids in the order of the positions they belong to.
class ByPosition {
 public:
  ByPosition(const std::vector<std::int32_t>& position_of_id, std::size_t num_positions);
  const std::int32_t* begin(std::size_t position) const { return &ids_[first_[position]]; }
  const std::int32_t* end(std::size_t position) const { return begin(position + 1); }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::int32_t> ids_;
};

class StepSimulator::Facts {
 public:
  Facts(const Trace& traced, OptimizerModel optimizer);

  const StandingRegion& region(OpRange range);
  OpRange range_of(const PlannedRegion& region, std::map<std::string, std::size_t>& opened,
                   std::map<std::string, std::size_t>& closed) const;
  ScopeId top_scope(ScopeId scope) const {
    return scope == kNone ? kNone : top_scopes_[static_cast<std::size_t>(scope)];
  }
  bool is_born(StorageId storage) const { return born_at[static_cast<std::size_t>(storage)] >= 0; }

  const Trace& trace;
  OptimizerBytes optimizer_bytes;
  Bytes baseline;
  std::vector<OpId> born_at;            // by storage; kNone: from outside
  ByPosition born;                      // storages by op
  ByPosition freed;                     // storages by op, and behind the last
  std::vector<StorageId> pack_storage;  // by pack; kNone: from outside
  std::optional<Profile> profile;
  StepTime::Duration communication{};  // by the profile, recompute left out
  std::vector<Bytes> gathered;         // by op of forward; empty: nothing is

  Bytes gathered_at(OpId op) const {
    return gathered.empty() ? Bytes{} : gathered[static_cast<std::size_t>(op)];
  }

 private:
  const std::vector<ScopeId>& openings(const std::string& path) const;

  std::vector<ScopeId> top_scopes_;
  std::vector<PackEvents> pack_events_;
  std::unordered_map<std::string, std::vector<ScopeId>> scopes_by_path_;
  std::map<std::pair<OpId, OpId>, StandingRegion> regions_;
  std::vector<std::shared_ptr<const RegionGraph>> graphs_;
};

}  // namespace rematch
