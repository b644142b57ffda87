// Finds the best plan of a simple form, which people can read. In such a plan, whole blocks or
// modules of a block are regions. One save list applies to all layers, or one list applies to the
// first layers and another list to the remaining layers. The lists contain no views and no casts.
// The search of front.h finds better plans.
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
  // only if `step_time` is below the time of keeping everything.
  std::optional<FrontPoint> lowest_within(std::chrono::nanoseconds step_time);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace rematch
