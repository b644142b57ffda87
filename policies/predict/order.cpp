#include "policies/predict/order.h"

#include <algorithm>
#include <utility>

#include "policies/predict/region_player.h"

namespace rematch {
namespace {

// Sinking is for short tails, a down-cast or a reduction. A longer closure is not weighed: in a
// region of a whole model that would take time quadratic in its ops.
constexpr std::size_t kMaxSunkOps = 64;
constexpr int kMaxWeighedSlots = 256;  // the next to be demanded

// Weighs the pending slots at each demand, and writes down what it ran early.
class SinkingOrder final : public OrderSearch {
 public:
  explicit SinkingOrder(const RegionGraph& graph) {
    std::vector<bool> listed(graph.slots.size(), false);
    for (const RegionEvent& event : graph.events) {
      if (event.kind != BackwardEvent::Kind::kDemand || listed[event.slot]) continue;
      listed[event.slot] = true;
      demanded_later_.push_back(event.slot);
    }
  }

  int next_before(int demanded, ReplayState& state) override {
    if (step_.pack != demanded || !started_) {
      step_ = {demanded, {}, {}};
      started_ = true;
    }
    const int slot = best(demanded, state);
    if (slot != kNone) step_.before.push_back(slot);
    return slot;
  }

  int next_after(int demanded, ReplayState& state) override {
    const int slot = best(demanded, state);
    if (slot != kNone) {
      step_.after.push_back(slot);
    } else {
      started_ = false;
      if (!step_.before.empty() || !step_.after.empty()) steps_.push_back(std::move(step_));
    }
    return slot;
  }

  std::vector<DemandStep> take_steps() { return std::move(steps_); }

 private:
  int best(int demanded, ReplayState& state) {
    int found = kNone;
    Bytes most;
    int weighed = 0;
    for (int slot : demanded_later_) {
      if (slot == demanded || !state.is_planned_slot(slot)) continue;
      if (++weighed > kMaxWeighedSlots) break;
      const std::vector<int>& ops = state.find_missing(slot, kMaxSunkOps);
      if (ops.empty() || ops.size() > kMaxSunkOps) continue;
      const Bytes gain = state.gain_of(ops);
      if (gain > most) {
        most = gain;
        found = slot;
      }
    }
    return found;
  }

  std::vector<int> demanded_later_;  // others would be executed for nothing
  DemandStep step_;
  bool started_ = false;
  std::vector<DemandStep> steps_;
};

}  // namespace

void choose_order(const Trace& trace, OpId first_op, OpId end_op, RegionType& type) {
  choose_order(make_region_graph(trace, {first_op, end_op}), type);
}

void choose_order(const RegionGraph& graph, RegionType& type, Bytes least) {
  type.demand_steps.clear();
  type.whole_on_demand = false;
  if (graph.events.empty()) return;
  const Bytes lazy = play_region(graph, type, ReplayExtent::kLazyClosure).peak;
  if (lazy <= least) return;
  SinkingOrder order(graph);
  const Bytes sunk = play_region(graph, type, ReplayExtent::kLazyClosure, &order).peak;
  const auto is_whole_lower = [&] {
    if (std::min(lazy, sunk) <= least) return false;
    const Bytes whole = play_region(graph, type, ReplayExtent::kWholeClosure).peak;
    return whole < std::min(lazy, sunk);
  };
  if (is_whole_lower()) {
    type.whole_on_demand = true;
  } else if (sunk < lazy) {
    type.demand_steps = order.take_steps();
  }
}

}  // namespace rematch
