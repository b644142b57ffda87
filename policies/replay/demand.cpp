#include "policies/replay/demand.h"

namespace rematch {

ReplayExtent replay_extent(const RegionType& type, Schedule schedule) {
  if (schedule == Schedule::kWholeRegion && !type.by_demand) return ReplayExtent::kPrefix;
  return type.whole_on_demand ? ReplayExtent::kWholeClosure : ReplayExtent::kLazyClosure;
}

}  // namespace rematch
