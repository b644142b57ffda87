// The treatment of every op of a region, and why: a policy's lists against a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policies/catalogue/place_regions.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/plan/rejected.h"
#include "policies/predict/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// Matches a policy's selectors against a trace once, for all regions. Keeps references: the
// policy and the trace must outlive it.
class OpTreater {
 public:
  OpTreater(const Policy& policy, const Trace& trace);

  // The ops of one region, dead saves not marked. Their scopes are relative to their block, so that
  // regions of equal layers are equal: "attention.core"; in a region of several layers after the
  // layer's place in it: "+1.attention.core"; outside blocks, and in a root region, the whole path.
  std::vector<PlannedOp> treat(const PlacedRegion& region) const;

  // A policy that keeps or excepts something of which no region has any.
  std::optional<Rejected> check_matches(const std::vector<OpRange>& ranges) const;

 private:
  // For each op of the trace the first selector of a list that picks it, kNone for none.
  struct Matches {
    std::vector<int> selector;
    const std::vector<Selector>* list = nullptr;
    std::vector<bool> by_class;  // by selector: names an op that goes by another name here
    bool any(OpId op) const { return !selector.empty() && selector[op] != kNone; }
  };
  struct Decision {
    Treatment treatment = Treatment::kRecompute;
    std::string reason;
  };

  void note_excluded_shapes();
  bool has_excluded_shape(const TracedOp& op) const;
  int block_of(ScopeId scope) const;
  std::string scope_name(ScopeId scope, const PlacedRegion& region) const;
  bool goes_by_another_name(const Selector& selector) const;
  std::string text(const Matches& matches, OpId op) const;
  Matches match(const std::vector<Selector>& list) const;
  Decision decide(OpId op, int& alternated) const;
  Decision decide_by_lists(OpId op) const;
  std::string names_in(const std::vector<OpRange>& ranges,
                       const std::vector<const Selector*>& wanted) const;

  const Policy& policy_;
  const Trace& trace_;
  std::vector<int> block_of_scope_;  // index into Trace::blocks; kNone: the scope is no block
  Matches save_;
  Matches offload_;
  Matches exclude_;
  Matches recompute_;
  Matches alternate_;
  Matches alternate_exclude_;
  std::set<std::vector<std::int64_t>> excluded_shapes_;
};

}  // namespace rematch
