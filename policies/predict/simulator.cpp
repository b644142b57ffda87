#include "policies/predict/simulator.h"

#include "policies/predict/region_player.h"

namespace rematch {
namespace {

// The order that the plan gives.
class PlannedOrder final : public DemandOrder {
 public:
  PlannedOrder(const RegionGraph& graph, const RegionType& type) : steps_(graph.slots.size()) {
    for (const DemandStep& step : type.demand_steps) {
      if (step.pack < static_cast<int>(steps_.size())) steps_[step.pack] = &step;
    }
  }

  int next_before(int demanded, const ReplayState&) override {
    if (steps_[demanded] == nullptr) return kNone;
    return next(steps_[demanded]->before, before_);
  }
  int next_after(int demanded, const ReplayState&) override {
    if (steps_[demanded] == nullptr) return kNone;
    return next(steps_[demanded]->after, after_);
  }

 private:
  static int next(const std::vector<int>& slots, std::size_t& position) {
    if (position < slots.size()) return slots[position++];
    position = 0;
    return kNone;
  }

  std::vector<const DemandStep*> steps_;
  std::size_t before_ = 0;
  std::size_t after_ = 0;
};

}  // namespace

RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule) {
  return simulate_region(make_region_graph(trace, {first_op, end_op}), type, schedule);
}

RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule) {
  if (schedule == Schedule::kWholeRegion && !type.by_demand) {
    return play_region(graph, type, ReplayExtent::kPrefix, nullptr);
  }
  if (type.whole_on_demand) return play_region(graph, type, ReplayExtent::kWholeClosure, nullptr);
  PlannedOrder order(graph, type);
  return play_region(graph, type, ReplayExtent::kLazyClosure, &order);
}

}  // namespace rematch
