// Turns a mix of options into an explicit plan.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"
#include "policies/trace/trace.h"

namespace rematch {

class PlanBuilder {
 public:
  // Keeps references to the arguments, which must outlive the builder. `trace_sha256` is the
  // trace's hash, which takes milliseconds to compute.
  PlanBuilder(const Trace& trace, std::string trace_sha256, const SpanMap& map,
              const SpanOptions& options, const SearchSpace& space);

  // Builds a plan from the options that `mix` selects: see LayerMix::options.
  Plan build(const std::vector<int>& mix, std::string name);

 private:
  struct Place {
    ScopeId first;
    ScopeId last;
  };
  std::set<std::string_view> counted_blocks(const std::vector<int>& mix) const;
  void add_regions(Plan& plan, const std::vector<RegionSaves>& regions, int first, int last);
  std::vector<RegionSaves> fastest_region(int span) const;
  Place place_of(OpRange range, int first, int last) const;
  const RegionType& type_of(OpRange range, const RegionSaves& region, int first, int last);
  RegionType make_type(OpRange range, const RegionSaves& region, int first) const;
  std::string scope_name(OpId op, int first, bool several) const;

  const Trace& trace_;
  const SpanMap& map_;
  const SpanOptions& options_;
  SearchSpace space_;
  std::string trace_sha256_;
  std::map<std::string_view, int> times_opened_;
  // Caches region types, because finding the order of a type takes a few simulations. The key says
  // which kinds of span a region covers, where it starts and ends in them, and what it saves and
  // offloads.
  using TypeKey = std::tuple<std::vector<int>, int, int, std::vector<int>, std::vector<int>, bool>;
  std::map<TypeKey, RegionType> types_;
};

}  // namespace rematch
