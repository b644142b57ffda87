#include "policies/predict/region/order.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {
namespace {

// Maximum number of ops in a closure that may run early (see Note [Why lazy order is not always
// lowest]). Longer closures would take quadratic time in a region that spans a whole model.
constexpr std::size_t kMaxSunkOps = 64;
// maximum number of slots to consider, in the order in which backward demands them
constexpr std::size_t kMaxWeighedSlots = 256;

// Chooses which pending slot to recompute early.
class SinkingOrder {
 public:
  explicit SinkingOrder(const RegionGraph& graph) : place_(graph.slots.size(), kNowhere) {
    for (const RegionEvent& event : graph.events) {
      if (event.kind != BackwardEvent::Kind::kDemand || place_[*event.slot] != kNowhere) continue;
      place_[*event.slot] = demanded_later_.size();
      demanded_later_.push_back(*event.slot);
    }
  }

  // Returns the slot whose early recompute frees the most net bytes, or nullopt if no slot frees
  // any.
  OptionalIndex best(int demanded, ReplayState& state) {
    const std::vector<int> changed = state.take_unweighed();
    const bool is_windowed = demanded_later_.size() > kMaxWeighedSlots;
    Candidate best;
    if (has_none_left_ && !is_windowed) {
      // The previous search found no slot that frees bytes, so only changed slots can free bytes
      // now.
      for (int slot : changed) {
        if (slot != demanded && place_[slot] != kNowhere) weigh(slot, state, best);
      }
    } else {
      std::size_t weighed = 0;
      for (int slot : demanded_later_) {
        if (slot == demanded || !state.is_planned_slot(slot)) continue;
        if (++weighed > kMaxWeighedSlots) break;
        weigh(slot, state, best);
      }
    }
    has_none_left_ = !best.slot.has_value();
    return best.slot;
  }

 private:
  struct Candidate {
    OptionalIndex slot;
    std::size_t place = 0;
    Bytes gain;
  };

  // If two slots have equal gain, prefers the slot that is demanded first.
  void weigh(int slot, ReplayState& state, Candidate& best) const {
    if (!state.is_planned_slot(slot)) return;
    const Bytes gain = state.gain_of(slot, kMaxSunkOps);
    const bool is_better = gain > best.gain || (best.slot.has_value() && gain == best.gain &&
                                                place_[slot] < best.place);
    if (is_better) best = {slot, place_[slot], gain};
  }

  static constexpr std::size_t kNowhere = SIZE_MAX;

  // slots that backward demands, in this order; other slots are never needed
  std::vector<int> demanded_later_;
  std::vector<std::size_t> place_;  // indexed by slot: index in demanded_later_
  bool has_none_left_ = false;
};

}  // namespace

void choose_order(const Trace& trace, OpId first_op, OpId end_op, RegionType& type) {
  choose_order(make_region_graph(trace, {first_op, end_op}), type);
}

RegionSimulation choose_order(const RegionGraph& graph, RegionType& type, Bytes least) {
  type.demand_steps.clear();
  type.whole_on_demand = false;
  RegionSimulation lazy = play_region(graph, type, ReplayExtent::kLazyClosure);
  if (graph.events.empty() || lazy.peak <= least) return lazy;
  SinkingOrder order(graph);
  std::vector<DemandStep> steps;
  const NextEarly next = [&](int slot, ReplayState& state) { return order.best(slot, state); };
  // An order is useful only if it peaks below the best order so far, so the simulation stops there.
  RegionSimulation sunk =
      play_region(graph, type, ReplayExtent::kLazyClosure, next, &steps, lazy.peak);
  const Bytes lowest = std::min(lazy.peak, sunk.peak);
  if (lowest > least) {
    RegionSimulation whole =
        play_region(graph, type, ReplayExtent::kWholeClosure, {}, nullptr, lowest);
    if (whole.peak < lowest) {
      type.whole_on_demand = true;
      return whole;
    }
  }
  if (sunk.peak >= lazy.peak) return lazy;
  type.demand_steps = std::move(steps);
  return sunk;
}

}  // namespace rematch
