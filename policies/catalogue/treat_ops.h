// Decides the treatment of every op of a region, with a reason, by applying a policy's lists to a
// trace.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/catalogue/place_regions.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Matches a policy's selectors against a trace, once for all regions. Keeps references to the
// policy and the trace, which must outlive this object.
class OpTreater {
 public:
  OpTreater(const Policy& policy, const Trace& trace);

  const Trace& trace() const { return trace_; }

  // Returns the planned ops of one region, before dead saves are marked. PlannedOp::scope is
  // relative to the block, such as "attention.core", so that equal layers have equal regions. In a
  // region of several layers, the scope begins with the layer's index in the region:
  // "+1.attention.core". Outside blocks and in a root region, the scope is the whole path.
  std::vector<PlannedOp> treat(const PlacedRegion& region) const;

  // Returns whether the op belongs to Policy::save_regions, or is an add of Policy::save_last_add.
  // Returns false for gathers of parameters, which reshard_after_forward controls.
  bool is_in_saved_region(OpId op) const;

  // Returns Rejected if `recompute_regions` picks only a part of a scope of `save_regions`.
  // torch_remat cannot run only a part, because it skips a saved region as a whole.
  std::optional<Rejected> check_nesting(const std::vector<OpRange>& ranges) const;

  // Returns Rejected if the policy has regions and lists, but no op in the regions matches a list.
  std::optional<Rejected> check_matches(const std::vector<OpRange>& ranges) const;

 private:
  struct Match {
    // the first selector that picks the op, or null
    const Selector* selector = nullptr;
    bool by_class = false;  // the selector names an attention op that the trace does not have
  };
  struct Matches {
    IdTable<OpId, Match> by_op;  // indexed by op; empty if the policy's list is empty
    bool any(OpId op) const { return !by_op.empty() && by_op[op].selector != nullptr; }
  };
  struct Decision {
    Treatment treatment = Treatment::kRecompute;
    std::string reason;
  };

  void note_excluded_shapes();
  void note_last_adds();
  bool has_excluded_shape(const TracedOp& op) const;
  const TracedBlock* block_of(std::optional<ScopeId> scope) const;
  std::string scope_name(std::optional<ScopeId> scope, const PlacedRegion& region) const;
  bool goes_by_another_name(const Selector& selector) const;
  std::string text(const Matches& matches, OpId op) const;
  Matches match(const std::vector<Selector>& list) const;
  Decision decide(OpId op, int& alternated) const;
  // Returns the decision for an op that is a collective. Returns nullopt if the policy's lists
  // decide instead.
  std::optional<Decision> decide_collective(const TracedOp& op) const;
  Decision decide_by_lists(OpId op) const;
  Decision placed(Decision decision, const TracedOp& op) const;
  // Returns whether autograd saves a result of the op, or a view of one.
  bool is_saved_by_autograd(const TracedOp& op) const;
  bool has_save_list() const;
  std::string names_in(const std::vector<OpRange>& ranges,
                       const std::vector<Selector>& wanted) const;

  const Policy& policy_;
  const Trace& trace_;
  IdTable<StorageId, bool> is_packed_;
  IdTable<ScopeId, const TracedBlock*> block_of_scope_;  // null for a scope that is not a block
  Matches save_;
  ByStore<Matches> moved_to_;
  Matches exclude_;
  Matches recompute_;
  Matches save_regions_;
  Matches recompute_regions_;
  std::set<OpId> last_adds_;  // the adds of Policy::save_last_add
  Matches alternate_;
  Matches alternate_exclude_;
  std::set<std::vector<std::int64_t>> excluded_shapes_;
};

}  // namespace rematch
