// A mix of options as an explicit plan. Inside this folder.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/stretch_options.h"
#include "policies/search/stretches.h"
#include "policies/trace/trace.h"

namespace rematch {

class PlanBuilder {
 public:
  // References must outlive it.
  PlanBuilder(const Trace& trace, const StretchMap& map, const StretchOptions& options,
              const SearchSpace& space);

  // `mix`: an option for each stretch, or for several, in forward order. See LayerMix.
  Plan build(const std::vector<int>& mix, std::string name) const;

 private:
  struct Place {
    ScopeId first = kNone;
    ScopeId last = kNone;
  };
  Place place_of(OpRange range, int first, int last) const;
  RegionType type_of(OpRange range, const PickedRegion& region, int first) const;
  std::string scope_name(OpId op, int first, bool several) const;

  const Trace& trace_;
  const StretchMap& map_;
  const StretchOptions& options_;
  SearchSpace space_;
  std::string trace_sha256_;
};

}  // namespace rematch
