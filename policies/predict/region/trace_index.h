// The regions of a trace: where a plan's regions lie in it, and their graphs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

// What all regions of one trace share: where its scopes open, and when backward names each pack.
// Refers to the trace.
class TraceIndex {
 public:
  explicit TraceIndex(const Trace& trace);

  // The ranges of the plan's regions, in the plan's order. A scope that opens several times is
  // counted: the i-th region that starts with it starts at its i-th opening outside of other
  // regions, and ends where its last scope closes first. Throws std::invalid_argument if the trace
  // lacks a scope: the plan was made for another model.
  std::vector<OpRange> ranges(const Plan& plan) const;

  RegionGraph graph(OpRange range) const;

  // The first and last event of backward that names a pack; {0, 0} if none does.
  struct PackEvents {
    std::size_t first = 0;
    std::size_t end = 0;  // one past the last
  };

 private:
  // From the `from`-th opening of the path, the first one at `first_op` or behind it.
  ScopeId opening(const std::string& path, std::size_t& from, OpId first_op) const;

  const Trace* trace_;
  std::unordered_map<std::string_view, std::size_t> paths_;  // into openings_
  std::vector<std::vector<ScopeId>> openings_;               // in order
  IdTable<PackId, PackEvents> pack_events_;
};

// The same once. Of many regions or plans a TraceIndex finds them faster.
std::vector<OpRange> region_ranges(const Trace& trace, const Plan& plan);
RegionGraph make_region_graph(const Trace& trace, OpRange range);

// The tensors saved for backward while the region was open, in order. DemandStep::pack is an
// index into this.
std::vector<PackId> packs_of(const Trace& trace, OpRange range);

}  // namespace rematch
