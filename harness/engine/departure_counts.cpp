#include "harness/engine/departure_counts.h"

#include <algorithm>

namespace rematch {

bool DepartureCounts::add(const Departures& pass) {
  num_left_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  Departures& sum = types_[static_cast<std::size_t>(pass.type)].departures;
  const bool is_first = sum.left == 0;
  if (is_first) {
    sum.region = pass.region;
    sum.first_difference = pass.first_difference;
  }
  ++sum.left;
  sum.extra_ops += pass.extra_ops;
  sum.missing_ops += pass.missing_ops;
  sum.kept_beyond_plan = std::max(sum.kept_beyond_plan, pass.kept_beyond_plan);
  return is_first;
}

std::vector<Departures> DepartureCounts::all() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Departures> all;
  for (std::size_t type = 0; type < types_.size(); ++type) {
    const std::int64_t passes = types_[type].passes.load();
    if (passes == 0) continue;
    all.push_back(types_[type].departures);
    all.back().type = static_cast<int>(type);
    all.back().passes = passes;
  }
  return all;
}

}  // namespace rematch
