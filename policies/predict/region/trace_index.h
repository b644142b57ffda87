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

  // Returns the op ranges of the plan's regions in the plan's order. A region begins where its
  // first scope next opens after the previous region. It ends where its last scope next closes.
  // Throws std::invalid_argument if the trace lacks a scope, because the plan was made for another
  // model.
  std::vector<OpRange> ranges(const Plan& plan) const;

  RegionGraph graph(OpRange range) const;

  // The range of backward events that refer to a pack; {0, 0} if no event does.
  struct PackEvents {
    std::size_t first = 0;
    std::size_t end = 0;  // index after the last event
  };

 private:
  // Returns the first scope with this path that opens at or after `first_op`. Skips the first
  // `from` scopes, and then sets `from` past the returned scope.
  ScopeId opening(const std::string& path, std::size_t& from, OpId first_op) const;

  const Trace* trace_;
  std::unordered_map<std::string_view, std::size_t> paths_;  // index into openings_
  std::vector<std::vector<ScopeId>> openings_;               // for each path, its scopes in order
  IdTable<PackId, PackEvents> pack_events_;
};

// These functions build a new TraceIndex for each call. For many regions or plans, share one
// TraceIndex instead, which is faster.
std::vector<OpRange> region_ranges(const Trace& trace, const Plan& plan);
RegionGraph make_region_graph(const Trace& trace, OpRange range);

// Returns the tensors saved for backward inside the region, in order. DemandStep::pack is an index
// into this list.
std::vector<PackId> packs_of(const Trace& trace, OpRange range);

}  // namespace rematch
