// Held bytes, transient and cost of one span, or several in a row, with given regions in it, byte
// for byte as the simulator has it.
#pragma once

#include <map>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/block_front.h"
#include "policies/search/region/save_sets.h"
#include "policies/search/region/spans.h"

namespace rematch {

// A region and what it keeps.
struct PickedRegion {
  LocalRange range;
  std::vector<int> saves;
  // The part of `saves` that waits on the host, local to the region. Not priced by SpanPricer: it
  // takes all for saved.
  std::vector<int> offloaded = {};
  std::vector<RegionInput> offload_inputs = {};
  bool operator==(const PickedRegion&) const = default;
};

// A part of a span: a region, or what lies between regions.
struct PieceFigures {
  Bytes held;       // from forward to the end of its backward
  Bytes transient;  // most during its backward: held included, what earlier pieces hold not
  Bytes demanded;   // the same from its first demand on
  std::chrono::nanoseconds recompute{};
  std::int64_t num_recomputed = 0;  // ops
};

// One way to run a region, whatever is beside it.
struct PlayedRegion {
  LocalRange range;
  BlockPoint point;
  std::vector<StorageId> keeps;  // what `point.kept` are the bytes of, ascending
};

class SpanPricer {
 public:
  // Spans [first, first + num_spans) of the map. References must outlive it.
  SpanPricer(const SearchedTrace& searched, int first, int num_spans);

  // Regions in forward order, disjoint. Ops outside them are autograd's.
  LayerOption price(const std::vector<PickedRegion>& regions);

  // To search the save sets of a region with.
  const RegionGraph& graph(LocalRange range) { return piece(range).graph; }
  SaveSetCosts costs(LocalRange range);
  PlayedRegion played(LocalRange range, const BlockPoint& point);

  LocalRange whole() const { return {0, range_.end - range_.first}; }
  // By later spans' backward, when this one's begins. Transients of pieces include it.
  Bytes born() const { return map_.spans[last_].born; }

 private:
  friend class SpanTally;
  struct Piece {
    RegionGraph graph;
    Bytes born_before;  // most, between the backward of the piece behind it and its own
  };

  bool owns(StorageId storage) const {
    return map_.owner[storage] >= first_ && map_.owner[storage] <= last_;
  }
  const Piece& piece(LocalRange range);

  const Trace& trace_;
  const SpanMap& map_;
  const OpTimes& times_;
  Schedule schedule_;
  int first_;
  int last_;
  OpRange range_;
  std::map<std::pair<int, int>, Piece> pieces_;
};

// Note [Who pays for a storage]
// A storage that several hold counts once, at the holder that lets go of it last: the first in
// forward order. So pieces are tallied in forward order, and what an earlier piece has paid for is
// held anyway when a later one runs backward. What the next span pays for is gone by then, but
// this span may hold it still: it counts in the transient and not in what is held.
class SpanTally {
 public:
  // Has paid for what several spans read. The pricer must outlive it.
  explicit SpanTally(SpanPricer& pricer);

  const PieceFigures& shared() const { return shared_; }
  // In forward order, disjoint; ops between two pieces hold nothing.
  PieceFigures add_unmanaged(LocalRange range);
  PieceFigures add_region(const PlayedRegion& region);

  // All that later pieces need to know of the ones so far; ascending.
  const std::vector<StorageId>& paid() const { return paid_; }
  void set_paid(std::vector<StorageId> paid) { paid_ = std::move(paid); }

 private:
  // Does it add to what is held.
  bool hold(StorageId storage);

  SpanPricer* pricer_;
  std::vector<StorageId> paid_;  // ascending
  PieceFigures shared_;
  Bytes held_here_;
  Bytes late_;
};

}  // namespace rematch
