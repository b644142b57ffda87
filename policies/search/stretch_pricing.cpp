#include "policies/search/stretch_pricing.h"

#include <algorithm>
#include <set>

#include "policies/predict/simulator.h"
#include "policies/search/block_front.h"

namespace rematch {

StretchPricer::StretchPricer(const Trace& trace, const StretchMap& map, const OpTimes& times,
                             int first, int num_stretches)
    : trace_(trace),
      map_(map),
      times_(times),
      first_(first),
      last_(first + num_stretches - 1),
      range_{map.stretches[first_].range.first, map.stretches[last_].range.end} {}

const StretchPricer::Piece& StretchPricer::piece(OpRange range) {
  const auto [found, is_new] = pieces_.try_emplace({range.first, range.end});
  if (is_new) {
    found->second.graph = make_region_graph(
        trace_, {range_.first + range.first, range_.first + range.end}, map_.pack_events);
    found->second.born_before = born_before(found->second.graph);
  }
  return found->second;
}

// Ops of backward that follow the last event of other packs.
Bytes StretchPricer::born_before(const RegionGraph& graph) const {
  std::set<PackId> own;
  for (const RegionSlot& slot : graph.slots) own.insert(slot.pack);
  Bytes most;
  for (const BackwardEvent& event : trace_.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      most = std::max(most, event.other_bytes);
    } else if (own.contains(event.pack)) {
      return most;
    } else {
      most = {};
    }
  }
  return {};
}

const RegionGraph& StretchPricer::graph(OpRange range) { return piece(range).graph; }

SaveSetCosts StretchPricer::costs(OpRange range, Schedule schedule, bool early_stop) {
  SaveSetCosts costs;
  costs.schedule = schedule;
  costs.early_stop = early_stop;
  const auto begin = times_.begin() + range_.first;
  costs.op_times.assign(begin + range.first, begin + range.end);
  const RegionGraph& graph = piece(range).graph;
  for (StorageId storage : graph.storage_ids) {
    costs.free_storages.push_back(map_.owner[storage] > last_);
  }
  return costs;
}

namespace {

Bytes most_born(const RegionGraph& graph) {
  Bytes most;
  for (const RegionEvent& event : graph.events) most = std::max(most, event.other_bytes);
  return graph.other_bytes_before + most;
}

// Autograd holds what it saved until it lets go of it. Of that only `counted` storages change what
// is held; `start` is when backward of the piece begins.
Bytes peak_of_unmanaged(const RegionGraph& graph, const std::vector<bool>& counted, Bytes start) {
  std::vector<int> holders(graph.storages.size(), 0);
  std::vector<bool> alive(graph.slots.size(), true);
  for (const RegionSlot& slot : graph.slots) ++holders[graph.values[slot.use.value].storage];
  Bytes held = start;
  Bytes peak = held + graph.other_bytes_before;
  for (const RegionEvent& event : graph.events) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      peak = std::max(peak, held + graph.other_bytes_before + event.other_bytes);
    } else if (event.kind == BackwardEvent::Kind::kRelease && alive[event.slot]) {
      alive[event.slot] = false;
      const int storage = graph.values[graph.slots[event.slot].use.value].storage;
      if (--holders[storage] == 0 && counted[storage]) held -= graph.storages[storage].bytes;
    }
  }
  return peak;
}

}  // namespace

// Note [Who pays for a storage]
// A storage that several hold counts once, at the holder that lets go of it last: the first in
// forward order. So pieces are tallied in forward order, and what an earlier piece has paid for is
// held anyway when a later one runs backward. What the next stretch pays for is gone by then, but
// this stretch may hold it still: it counts in the transient and not in what is held.
class StretchPricer::Tally {
 public:
  explicit Tally(const StretchPricer& pricer) : pricer_(pricer) {
    for (StorageId storage = 0; storage < static_cast<StorageId>(pricer.map_.owner.size());
         ++storage) {
      if (pricer.map_.is_shared[storage] && pricer.owns(storage)) hold(storage);
    }
    pieces_.push_back({held_here_, held_here_, {}, {}, false});
  }

  void add_unmanaged(const Piece& piece) {
    const RegionGraph& graph = piece.graph;
    held_here_ = late_ = {};
    std::vector<bool> counted(graph.storages.size(), false);
    for (const RegionSlot& slot : graph.slots) {
      const int storage = graph.values[slot.use.value].storage;
      if (hold(graph.storage_ids[storage])) counted[storage] = true;
    }
    const Bytes start = held_here_ + late_;
    const Bytes peak = peak_of_unmanaged(graph, counted, start);
    pieces_.push_back({held_here_, std::max(peak, start + piece.born_before), {}, {}, false});
    pieces_.back().born = most_born(graph);
    pieces_.back().first_op = graph.range.first - pricer_.range_.first;
  }

  void add_region(const Piece& piece, const RegionType& type, Schedule schedule) {
    const RegionGraph& graph = piece.graph;
    held_here_ = late_ = {};
    const RegionSimulation simulation = simulate_region(graph, type, schedule);
    for (std::size_t storage = 0; storage < graph.storages.size(); ++storage) {
      if (graph.storages[storage].is_input) hold(graph.storage_ids[storage]);
    }
    const Bytes inputs = held_here_ + late_;
    const std::vector<bool> kept = kept_values(graph, type.ops);
    for (std::size_t value = 0; value < kept.size(); ++value) {
      if (kept[value]) hold(graph.storage_ids[graph.values[value].storage]);
    }
    const Bytes peak = inputs + std::max(simulation.peak, simulation.kept + piece.born_before);
    pieces_.push_back({held_here_, peak, inputs, piece.born_before, true});
    PieceFigures& figures = pieces_.back();
    figures.born = most_born(graph);
    figures.first_op = graph.range.first - pricer_.range_.first;
    figures.num_recomputed = static_cast<std::int64_t>(simulation.executed.size());
    for (const ExecutedOp& executed : simulation.executed) {
      figures.recompute += pricer_.times_[executed.op];
    }
  }

  const std::vector<PieceFigures>& pieces() const { return pieces_; }

 private:
  // Does it add to what is held.
  bool hold(StorageId storage) {
    const int owner = pricer_.map_.owner[storage];
    if (owner == kNone || owner < pricer_.first_ || !paid_.insert(storage).second) return false;
    (pricer_.owns(storage) ? held_here_ : late_) += pricer_.trace_.storages[storage].bytes;
    return true;
  }

  const StretchPricer& pricer_;
  std::set<StorageId> paid_;
  Bytes held_here_;
  Bytes late_;
  std::vector<PieceFigures> pieces_;
};

std::vector<PieceFigures> StretchPricer::pieces_of(const std::vector<TypedRegion>& regions,
                                                   Schedule schedule) {
  Tally result(*this);
  OpId done = 0;
  const auto add_unmanaged = [&](OpId end) {
    if (end == done) return;
    const Piece& found = piece({done, end});
    if (!found.graph.slots.empty()) result.add_unmanaged(found);
  };
  for (const TypedRegion& region : regions) {
    add_unmanaged(region.range.first);
    done = region.range.end;
    const Piece& found = piece(region.range);
    if (found.graph.slots.empty()) continue;  // nothing refers to it after forward
    result.add_region(found, region.type, schedule);
  }
  add_unmanaged(whole().end);
  return result.pieces();
}

std::vector<StretchPricer::TypedRegion> StretchPricer::typed(
    const std::vector<PickedRegion>& regions, Schedule schedule, bool early_stop) {
  std::vector<TypedRegion> types;
  for (const PickedRegion& region : regions) {
    const SaveSetCosts priced = costs(region.range, schedule, early_stop);
    types.push_back(
        {region.range, region_type_of(piece(region.range).graph, priced, region.saves)});
  }
  return types;
}

std::vector<PieceFigures> StretchPricer::pieces_of(const std::vector<PickedRegion>& regions,
                                                   Schedule schedule, bool early_stop) {
  return pieces_of(typed(regions, schedule, early_stop), schedule);
}

LayerOption StretchPricer::price(const std::vector<PickedRegion>& regions, Schedule schedule,
                                 bool early_stop) {
  return option_of(pieces_of(regions, schedule, early_stop));
}

// See Note [The peak of a mix].
LayerOption StretchPricer::option_of(const std::vector<PieceFigures>& pieces) const {
  LayerOption option;
  for (const PieceFigures& piece : pieces) {
    option.transient = std::max(option.transient, option.held + piece.transient);
    option.held += piece.held;
    option.time += piece.recompute;
  }
  option.transient -= map_.stretches[last_].born;
  option.num_layers = last_ - first_ + 1;
  return option;
}

}  // namespace rematch
