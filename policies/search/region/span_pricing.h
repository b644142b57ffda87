// Computes held bytes, transient and cost of one span, or of several adjacent ones, with given
// regions in it. Bytes equal the simulator's.
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
  // The part of `saves` that is offloaded, local to the region. SpanPricer ignores it and treats
  // all of `saves` as saved.
  std::vector<int> offloaded = {};
  std::vector<RegionInput> offload_inputs = {};
  bool operator==(const PickedRegion&) const = default;
};

// A part of a span: a region, or the ops between regions.
struct PieceFigures {
  Bytes held;  // held from forward to the end of its backward
  // Most bytes during its backward; includes `held`, excludes bytes of earlier pieces.
  Bytes transient;
  Bytes demanded;  // the same from its first demand on
  std::chrono::nanoseconds recompute{};
  std::int64_t num_recomputed = 0;  // ops
};

// One way to run a region, independent of its neighbours.
struct PlayedRegion {
  LocalRange range;
  BlockPoint point;
  std::vector<StorageId> keeps;  // the storages of `point.kept`, ascending
};

class SpanPricer {
 public:
  // Prices spans [first, first + num_spans) of the map. The references must outlive the pricer.
  SpanPricer(const SearchedTrace& searched, int first, int num_spans);

  // `regions` must be disjoint and in forward order. Autograd manages the ops outside them.
  LayerOption price(const std::vector<PickedRegion>& regions);

  // These serve the search for save sets of a region.
  const RegionGraph& graph(LocalRange range) { return piece(range).graph; }
  SaveSetCosts costs(LocalRange range);
  PlayedRegion played(LocalRange range, const BlockPoint& point);

  LocalRange whole() const { return {0, range_.end - range_.first}; }
  // Bytes made by later spans' backward when this one's begins. Transients of pieces include them.
  Bytes born() const { return map_.spans[last_].born; }

 private:
  friend class SpanTally;
  struct Piece {
    RegionGraph graph;
    Bytes born_before;  // most bytes between the backward of the next piece and its own
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
// A storage with several holders counts once, at the holder that releases it last, which is the
// first in forward order. Pieces are therefore tallied in forward order. A storage that an earlier
// piece has paid for is held anyway when a later piece runs backward. The next span has already
// released what it paid for, but this span may still hold it. Such a storage counts in the
// transient and not in the held bytes.
class SpanTally {
 public:
  // Starts with the storages that several spans read already paid for. The pricer must outlive it.
  explicit SpanTally(SpanPricer& pricer);

  const PieceFigures& shared() const { return shared_; }
  // Pieces must be disjoint and in forward order. Ops between two pieces hold nothing.
  PieceFigures add_unmanaged(LocalRange range);
  PieceFigures add_region(const PlayedRegion& region);

  // The storages paid for so far, ascending. Later pieces depend on earlier ones only through
  // these.
  const std::vector<StorageId>& paid() const { return paid_; }
  void set_paid(std::vector<StorageId> paid) { paid_ = std::move(paid); }

 private:
  // Pays for the storage. Returns whether this adds to what is held.
  bool hold(StorageId storage);

  SpanPricer* pricer_;
  std::vector<StorageId> paid_;  // ascending
  PieceFigures shared_;
  Bytes held_here_;
  Bytes late_;
};

}  // namespace rematch
