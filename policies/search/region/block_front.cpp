#include "policies/search/region/block_front.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "policies/predict/region/order.h"

namespace rematch {
namespace {

bool dominates(const BlockPoint& a, const BlockPoint& b, std::chrono::nanoseconds slack = {}) {
  return a.saved <= b.saved && a.recompute <= b.recompute + slack && a.transient <= b.transient;
}

// Drops a set if it is at most `slack` faster than a kept set with fewer bytes.
void thin_sets(std::vector<SaveSet>& sets, std::chrono::nanoseconds slack) {
  std::vector<SaveSet> kept;
  for (SaveSet& set : sets) {
    if (kept.empty() || kept.back().recompute > set.recompute + slack) {
      kept.push_back(std::move(set));
    }
  }
  sets = std::move(kept);
}

// Keeps only the sets on the lower convex hull. Returns the largest time by which a dropped set is
// faster than the kept set that replaces it.
std::chrono::nanoseconds keep_hull(std::vector<SaveSet>& sets) {
  const auto lies_above = [&](const SaveSet& before, const SaveSet& set, const SaveSet& after) {
    const auto slope = [](const SaveSet& from, const SaveSet& to) {
      return static_cast<double>((to.recompute - from.recompute).count()) /
             static_cast<double>((to.saved - from.saved).count);
    };
    return slope(before, set) >= slope(before, after);
  };
  std::vector<std::size_t> hull;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    while (hull.size() >= 2 &&
           lies_above(sets[hull[hull.size() - 2]], sets[hull.back()], sets[i])) {
      hull.pop_back();
    }
    hull.push_back(i);
  }
  std::chrono::nanoseconds gap{};
  std::vector<SaveSet> kept;
  for (std::size_t corner = 0; corner < hull.size(); ++corner) {
    const std::size_t end = corner + 1 < hull.size() ? hull[corner + 1] : sets.size();
    gap = std::max(gap, sets[hull[corner]].recompute - sets[end - 1].recompute);
    kept.push_back(std::move(sets[hull[corner]]));
  }
  sets = std::move(kept);
  return gap;
}

// Collects points and keeps the points that no other point dominates, without duplicates.
class Archive {
 public:
  explicit Archive(std::chrono::nanoseconds slack) : slack_(slack) {}

  // Adds the point unless a known point dominates it. Returns whether it was added.
  bool offer(BlockPoint point) {
    for (const BlockPoint& known : points_) {
      if (dominates(known, point, slack_)) return false;
    }
    std::erase_if(points_, [&](const BlockPoint& known) { return dominates(point, known); });
    points_.push_back(std::move(point));
    return true;
  }

  std::vector<BlockPoint> take() {
    std::sort(points_.begin(), points_.end(), [](const BlockPoint& a, const BlockPoint& b) {
      return std::tie(a.saved, a.recompute, a.transient) <
             std::tie(b.saved, b.recompute, b.transient);
    });
    return std::move(points_);
  }

 private:
  std::chrono::nanoseconds slack_;
  std::vector<BlockPoint> points_;
};

Bytes saved_bytes(const RegionGraph& graph, const SaveSetCosts& costs,
                  const std::vector<PlannedOp>& ops) {
  const std::vector<bool> kept = kept_values(graph, ops);
  std::vector<bool> counted = costs.free_storages;
  counted.resize(graph.storages.size(), false);
  Bytes bytes;
  for (std::size_t value = 0; value < kept.size(); ++value) {
    const int storage = graph.values[value].storage;
    if (!kept[value] || counted[storage] || graph.storages[storage].outside) continue;
    counted[storage] = true;
    bytes += graph.storages[storage].bytes;
  }
  return bytes;
}

class FrontFinder {
 public:
  FrontFinder(const RegionGraph& graph, const SaveSetCosts& costs, const BlockFrontLimits& limits,
              SimulatedSets* known)
      : graph_(graph),
        costs_(costs),
        limits_(limits),
        known_(known == nullptr ? own_ : *known),
        archive_(limits.time_slack) {}

  BlockFront find();

 private:
  Bytes transient_bound() const;
  void try_all(const std::vector<int>& ops);
  void improve(std::vector<std::vector<int>> sets, const std::vector<int>& ops);
  bool offer(const std::vector<int>& saves);
  BlockPoint price(const std::vector<int>& saves);

  const RegionGraph& graph_;
  const SaveSetCosts& costs_;
  BlockFrontLimits limits_;
  Bytes bound_;  // lower bound of the transient
  SimulatedSets own_;
  SimulatedSets& known_;
  Archive archive_;
  std::set<std::vector<int>> simulated_;
};

BlockFront FrontFinder::find() {
  BlockFront front;
  front.transient_bound = bound_ = transient_bound();
  SaveSets sets = find_save_sets(graph_, costs_, limits_.max_labels);
  std::chrono::nanoseconds gap = sets.time_gap;
  if (limits_.hull_only) gap += keep_hull(sets.sets);
  front.time_gap = gap;
  if (limits_.time_slack.count() > 0) thin_sets(sets.sets, limits_.time_slack);
  Bytes highest = front.transient_bound;
  std::vector<std::vector<int>> found;
  for (const SaveSet& set : sets.sets) {
    const BlockPoint point = price(set.ops);
    highest = std::max(highest, point.transient);
    // If on_demand recomputes the region as a whole, it also recomputes tensors that backward never
    // demands. find_save_sets() does not count these tensors, so the additional time is added here.
    front.time_gap = std::max(front.time_gap, gap + point.recompute - set.recompute);
    simulated_.insert(set.ops);
    archive_.offer(point);
    found.push_back(set.ops);
  }
  const std::vector<int> ops = savable_ops(graph_, costs_);
  if (highest > front.transient_bound || front.time_gap.count() > 0) {
    if (ops.size() <= limits_.max_tried_ops && !limits_.hull_only) {
      try_all(ops);
      front.time_gap = {};
    } else {
      improve(std::move(found), ops);
      front.transient_gap = highest - front.transient_bound;
    }
  }
  // thin_sets() and archive_ may each lose up to time_slack
  front.time_gap += 2 * limits_.time_slack;
  front.points = archive_.take();
  return front;
}

// Returns a lower bound of the transient over all save sets: the bytes that backward made, plus the
// saved tensors from their demand to their release. With whole_region, all saved tensors count from
// the first demand on.
Bytes FrontFinder::transient_bound() const {
  std::vector<int> holders(graph_.storages.size(), 0);
  Bytes held;
  const auto hold = [&](int slot, int by) {
    const int storage = graph_.values[graph_.slots[slot].use.value].storage;
    if (graph_.storages[storage].outside) return;
    if (holders[storage] == 0) held += graph_.storages[storage].bytes;
    holders[storage] += by;
    if (holders[storage] == 0) held -= graph_.storages[storage].bytes;
  };
  std::vector<bool> is_demanded(graph_.slots.size(), false);
  for (int slot : demanded_slots(graph_)) is_demanded[slot] = true;
  std::vector<bool> is_held(graph_.slots.size(), false);
  bool begun = false;
  Bytes bound = graph_.other_bytes_before;
  for (const RegionEvent& event : graph_.events) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      bound = std::max(bound, held + graph_.other_bytes_before + event.other_bytes);
    } else if (event.kind == BackwardEvent::Kind::kRelease) {
      if (is_held[*event.slot]) hold(*event.slot, -1);
      is_held[*event.slot] = is_demanded[*event.slot] = false;
    } else if (is_demanded[*event.slot] && costs_.schedule == Schedule::kOnDemand) {
      if (!is_held[*event.slot]) hold(*event.slot, 1);
      is_held[*event.slot] = true;
    } else if (is_demanded[*event.slot] && !begun) {
      begun = true;
      for (std::size_t slot = 0; slot < is_demanded.size(); ++slot) {
        is_held[slot] = is_demanded[slot];
        if (is_held[slot]) hold(static_cast<int>(slot), 1);
      }
    }
  }
  return bound;
}

void FrontFinder::try_all(const std::vector<int>& ops) {
  for (std::uint64_t chosen = 0; chosen < (std::uint64_t{1} << ops.size()); ++chosen) {
    std::vector<int> saves;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if ((chosen >> i & 1) != 0) saves.push_back(ops[i]);
    }
    if (!simulated_.contains(saves)) archive_.offer(price(saves));
  }
}

// Improves the front by single changes: saves one op more or one op less. Starts from every point
// that improves the front.
void FrontFinder::improve(std::vector<std::vector<int>> sets, const std::vector<int>& ops) {
  const std::size_t most = simulated_.size() + limits_.max_simulations;
  for (std::size_t next = 0; next < sets.size(); ++next) {
    for (int op : ops) {
      std::vector<int> changed = sets[next];
      const auto place = std::lower_bound(changed.begin(), changed.end(), op);
      if (place != changed.end() && *place == op) {
        changed.erase(place);
      } else {
        changed.insert(place, op);
      }
      if (simulated_.size() >= most) return;
      if (offer(changed)) sets.push_back(std::move(changed));
    }
  }
}

bool FrontFinder::offer(const std::vector<int>& saves) {
  if (!simulated_.insert(saves).second) return false;
  return archive_.offer(price(saves));
}

BlockPoint FrontFinder::price(const std::vector<int>& saves) {
  const auto found = known_.find(saves);
  if (found == known_.end()) {
    return known_.emplace(saves, price_save_set(graph_, costs_, saves, bound_)).first->second;
  }
  BlockPoint point = found->second;
  point.saved = saved_bytes(graph_, costs_, ops_saving(graph_, saves));
  return point;
}

}  // namespace

std::vector<PlannedOp> ops_saving(const RegionGraph& graph, const std::vector<int>& saves) {
  std::vector<PlannedOp> ops(graph.ops.size());
  for (int op : saves) ops[op].treatment = Treatment::kSave;
  return ops;
}

BlockFront find_block_front(const RegionGraph& graph, const SaveSetCosts& costs,
                            const BlockFrontLimits& limits, SimulatedSets* known) {
  return FrontFinder(graph, costs, limits, known).find();
}

PlayedSaves play_saves(const RegionGraph& graph, const SaveSetCosts& costs,
                       const std::vector<int>& saves, Bytes least) {
  PlayedSaves played;
  RegionType& type = played.type;
  type.ops = ops_saving(graph, saves);
  played.simulation = costs.schedule == Schedule::kOnDemand
                          ? choose_order(graph, type, least)
                          : simulate_region(graph, type, costs.schedule);
  return played;
}

BlockPoint price_save_set(const RegionGraph& graph, const SaveSetCosts& costs,
                          const std::vector<int>& saves, Bytes least) {
  const auto [type, simulation] = play_saves(graph, costs, saves, least);
  BlockPoint point{saved_bytes(graph, costs, type.ops),
                   simulation.boundary_peak,
                   {},
                   static_cast<int>(simulation.executed.size()),
                   saves,
                   simulation.kept,
                   simulation.demanded_peak};
  for (const ExecutedOp& executed : simulation.executed) {
    point.recompute += costs.op_times[executed.op - graph.range.first];
  }
  return point;
}

}  // namespace rematch
