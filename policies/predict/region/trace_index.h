// Finds the regions of a plan in a trace and builds their graphs.
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

// Facts that all regions of one trace share: where scopes open, and which events of backward refer
// to each pack. Keeps a reference to the trace.
class TraceIndex {
 public:
  explicit TraceIndex(const Trace& trace);

  // Returns the op ranges of the plan's regions in the plan's order. A scope may open several
  // times. The i-th region that starts with a scope begins at the i-th opening of this scope
  // outside other regions. A region ends at the first closing of its last scope. Throws
  // std::invalid_argument if the trace lacks a scope, because the plan was made for another model.
  std::vector<OpRange> ranges(const Plan& plan) const;

  RegionGraph graph(OpRange range) const;

  // The range of backward events that refer to a pack; {0, 0} if no event does.
  struct PackEvents {
    std::size_t first = 0;
    std::size_t end = 0;  // index after the last event
  };

 private:
  // Returns the first opening of the path at or after `first_op`, starting at opening number
  // `from`. Advances `from` past the returned opening.
  ScopeId opening(const std::string& path, std::size_t& from, OpId first_op) const;

  const Trace* trace_;
  std::unordered_map<std::string_view, std::size_t> paths_;  // index into openings_
  std::vector<std::vector<ScopeId>> openings_;               // sorted by opening
  IdTable<PackId, PackEvents> pack_events_;
};

// These functions build a TraceIndex for a single call. With many regions or plans, use one shared
// TraceIndex, which is faster.
std::vector<OpRange> region_ranges(const Trace& trace, const Plan& plan);
RegionGraph make_region_graph(const Trace& trace, OpRange range);

// Returns the tensors saved for backward while the region was open, in order. DemandStep::pack is
// an index into this list.
std::vector<PackId> packs_of(const Trace& trace, OpRange range);

}  // namespace rematch
