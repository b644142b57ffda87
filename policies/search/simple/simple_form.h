// Finds the best plan of a simple form, which people can read. Whole blocks, or modules of a block,
// are regions. All layers have the same save list, or the first layers have one list and the
// remaining layers another. Save lists name no views and no casts. The search of front.h finds
// better plans.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "policies/search/front/front.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

class SimpleSearch {
 public:
  // Evaluates all rules. The references must outlive the search. Throws std::invalid_argument if
  // the profile belongs to another trace.
  SimpleSearch(const Trace& trace, const Profile& profile, const SearchSpace& space);
  ~SimpleSearch();
  SimpleSearch(const SimpleSearch&) = delete;
  SimpleSearch& operator=(const SimpleSearch&) = delete;

  // Returns the fastest plan of at most this peak. Returns nullopt if no plan of the simple form
  // has a peak that low.
  std::optional<FrontPoint> fastest_within(Bytes peak);
  FrontPoint lowest();
  // Returns the plan with the lowest peak among plans of at most this step time. Returns nullopt
  // only if a step that keeps everything takes longer.
  std::optional<FrontPoint> lowest_within(std::chrono::nanoseconds step_time);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace rematch
