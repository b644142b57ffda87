#include "harness/engine/departure_counts.h"

#include <algorithm>

namespace rematch {

DepartureCounts::DepartureCounts(const Plan& plan) : types_(num_types(plan)) {
  std::size_t number = 0;
  int index = 0;
  for (const ShapePlan* shape : shapes_of(plan)) {
    for (int type = 0; type < static_cast<int>(shape->types.size()); ++type) {
      Departures& departures = types_[number++].departures;
      departures.shape = index;
      departures.type = type;
    }
    ++index;
  }
}

bool DepartureCounts::add(std::size_t type, const Departures& pass) {
  num_left_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  Departures& sum = types_[type].departures;
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
  for (const OfType& type : types_) {
    const std::int64_t passes = type.passes.load();
    if (passes == 0) continue;
    all.push_back(type.departures);
    all.back().passes = passes;
  }
  return all;
}

}  // namespace rematch
