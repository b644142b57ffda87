#include "policies/search/region/span_pricing.h"

#include <algorithm>

namespace rematch {

SpanPricer::SpanPricer(const SearchedTrace& searched, int first, int num_spans)
    : trace_(searched.trace),
      map_(searched.map),
      times_(searched.times),
      schedule_(searched.space.schedule),
      first_(first),
      last_(first + num_spans - 1),
      range_{map_.spans[first_].range.first, map_.spans[last_].range.end} {}

const SpanPricer::Piece& SpanPricer::piece(LocalRange range) {
  const auto [found, is_new] = pieces_.try_emplace({range.first, range.end});
  if (is_new) {
    found->second.graph = map_.index.graph({range_.first + range.first, range_.first + range.end});
    found->second.born_before = most_born_before(trace_, found->second.graph);
  }
  return found->second;
}

SaveSetCosts SpanPricer::costs(LocalRange range) {
  SaveSetCosts costs;
  costs.schedule = schedule_;
  const auto begin = times_.begin() + range_.first.index;
  costs.op_times.assign(begin + range.first, begin + range.end);
  const RegionGraph& graph = piece(range).graph;
  for (StorageId storage : graph.storage_ids) {
    costs.free_storages.push_back(map_.owner[storage] > last_);
  }
  return costs;
}

namespace {

// Returns the peak during backward of a piece that autograd manages. `counted` marks the storages
// whose release lowers the held bytes. `start` is the number of bytes held when backward of the
// piece begins.
Bytes peak_of_unmanaged(const RegionGraph& graph, const std::vector<bool>& counted, Bytes start) {
  std::vector<int> holders(graph.storages.size(), 0);
  std::vector<bool> alive;
  for (const RegionSlot& slot : graph.slots) {
    alive.push_back(!slot.is_dropped);
    if (alive.back()) ++holders[graph.values[slot.use.value].storage];
  }
  Bytes held = start;
  Bytes peak = held + graph.other_bytes_before;
  for (const RegionEvent& event : graph.events) {
    if (event.kind == BackwardEvent::Kind::kOp) {
      peak = std::max(peak, held + graph.other_bytes_before + event.other_bytes);
    } else if (event.kind == BackwardEvent::Kind::kRelease && alive[*event.slot]) {
      alive[*event.slot] = false;
      const int storage = graph.values[graph.slots[*event.slot].use.value].storage;
      if (--holders[storage] == 0 && counted[storage]) held -= graph.storages[storage].bytes;
    }
  }
  return peak;
}

}  // namespace

RegionOption SpanPricer::option_of(LocalRange range, const BlockPoint& point) {
  const RegionGraph& graph = piece(range).graph;
  return {range, point, kept_storages(graph, ops_saving(graph, point.saves))};
}

SpanTally::SpanTally(SpanPricer& pricer) : pricer_(&pricer) {
  const SpanMap& map = pricer.map_;
  for (const StorageId storage : map.owner.ids()) {
    if (map.is_shared[storage] && pricer.owns(storage)) hold(storage);
  }
  shared_.held = shared_.transient = held_here_;
}

bool SpanTally::hold(StorageId storage) {
  const OptionalIndex owner = pricer_->map_.owner[storage];
  if (!owner.has_value() || *owner < pricer_->first_) return false;
  const auto place = std::lower_bound(paid_.begin(), paid_.end(), storage);
  if (place != paid_.end() && *place == storage) return false;
  paid_.insert(place, storage);
  (pricer_->owns(storage) ? held_here_ : late_) += pricer_->trace_.storages[storage].bytes;
  return true;
}

PieceFigures SpanTally::add_unmanaged(LocalRange range) {
  const SpanPricer::Piece& piece = pricer_->piece(range);
  const RegionGraph& graph = piece.graph;
  if (!has_live_slot(graph)) return {};
  held_here_ = late_ = {};
  std::vector<bool> counted(graph.storages.size(), false);
  for (const RegionSlot& slot : graph.slots) {
    if (slot.is_dropped) continue;
    const int storage = graph.values[slot.use.value].storage;
    if (hold(graph.storage_ids[storage])) counted[storage] = true;
  }
  const Bytes start = held_here_ + late_;
  PieceFigures figures;
  figures.held = held_here_;
  figures.transient = std::max(peak_of_unmanaged(graph, counted, start), start + piece.born_before);
  figures.demanded = figures.transient;
  return figures;
}

PieceFigures SpanTally::add_region(const RegionOption& region) {
  const SpanPricer::Piece& piece = pricer_->piece(region.range);
  held_here_ = late_ = {};
  for (const StorageId storage : input_storages(piece.graph)) hold(storage);
  held_here_ += copied_bytes(piece.graph);
  const Bytes inputs = held_here_ + late_;
  for (const StorageId storage : region.keeps) hold(storage);
  PieceFigures figures;
  figures.held = held_here_;
  const BlockPoint& point = region.point;
  figures.demanded = inputs + point.demanded;
  figures.transient = inputs + std::max(point.transient, point.kept + piece.born_before);
  figures.recompute = point.recompute;
  figures.num_recomputed = point.num_recomputed;
  return figures;
}

// Computes the figures that Note [The peak of a mix] needs.
LayerOption SpanPricer::price(const std::vector<RegionSaves>& regions) {
  SpanTally tally(*this);
  LayerOption option;
  option.held = option.transient = option.transient_beside = tally.shared().held;
  const auto add = [&](const PieceFigures& piece) {
    option.transient = std::max(option.transient, option.held + piece.transient);
    // The first demand in this span's first region brings back the offloaded values of the previous
    // layer. They are on the device during backward of this region and of earlier pieces.
    if (option.passes_on) {
      option.transient_beside = std::max(option.transient_beside, option.held + piece.demanded);
    }
    option.held += piece.held;
    option.time += piece.recompute;
  };
  int done = 0;
  const auto add_unmanaged = [&](int end) {
    if (end != done) add(tally.add_unmanaged({done, end}));
  };
  for (const RegionSaves& region : regions) {
    add_unmanaged(region.range.first);
    done = region.range.end;
    // backward needs no tensor of this region, so the region holds nothing
    if (!has_live_slot(graph(region.range))) continue;
    const SaveSetCosts priced = costs(region.range);
    const BlockPoint point = price_save_set(graph(region.range), priced, region.saves);
    add(tally.add_region(option_of(region.range, point)));
    option.passes_on = false;
  }
  add_unmanaged(whole().end);
  option.transient -= born();
  option.transient_beside -= born();
  option.num_layers = last_ - first_ + 1;
  return option;
}

}  // namespace rematch
