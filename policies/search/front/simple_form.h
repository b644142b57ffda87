// The best plan of the form that every trainer can express: whole blocks or modules of a block are
// regions, and one save list holds for all layers, or one for the first layers and one for the
// rest. No view and no cast is in a list. What is better than these is the front's (front.h).
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
  // Weighs all rules. References must outlive it. Throws std::invalid_argument if the profile is
  // another trace's.
  SimpleSearch(const Trace& trace, const Profile& profile, const SearchSpace& space);
  ~SimpleSearch();
  SimpleSearch(const SimpleSearch&) = delete;
  SimpleSearch& operator=(const SimpleSearch&) = delete;

  // Nothing: no plan of the form has so low a peak.
  std::optional<FrontPoint> fastest_within(Bytes peak);
  FrontPoint lowest();
  // The plan of at most this step time; nothing only below the time of keeping everything.
  std::optional<FrontPoint> lowest_within(std::chrono::nanoseconds step_time);

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace rematch
