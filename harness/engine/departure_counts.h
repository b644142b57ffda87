// Counts the forward passes whose ops differed from the plan, for Checkpoint::departures().
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "harness/engine/recording.h"

namespace rematch {

class DepartureCounts {
 public:
  explicit DepartureCounts(const Plan& plan);

  // `type` is the region type's PreparedRegionType::number.
  void add_pass(std::size_t type) { types_[type].passes.fetch_add(1); }
  // Adds a pass that left its plan to the counts of its region type. Ignores these fields of
  // `pass`: shape, type, passes, left. Returns whether this is the first such pass of the type.
  bool add(std::size_t type, const Departures& pass);

  std::vector<Departures> all() const;
  std::int64_t num_left() const { return num_left_.load(std::memory_order_relaxed); }

 private:
  struct OfType {
    std::atomic<std::int64_t> passes{0};
    Departures departures;
  };

  std::atomic<std::int64_t> num_left_{0};
  mutable std::mutex mutex_;  // protects the `departures` of all elements of types_
  std::vector<OfType> types_;
};

}  // namespace rematch
