// Computes held bytes, transient and cost of one span or of several adjacent spans, given the
// regions in the spans. The bytes equal the step simulator's bytes.
//
// The spans are divided into pieces: regions, and the ops between two regions. Several pieces may
// hold the same storage, but only one of them counts its bytes: see Note [Who pays for a storage].
#pragma once

#include <map>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/mix/layer_mix.h"
#include "policies/search/region/block_front.h"
#include "policies/search/region/save_sets.h"
#include "policies/search/region/spans.h"

namespace rematch {

// A region, and the ops that it keeps.
struct RegionSaves {
  LocalRange range;
  std::vector<int> saves;
  // The ops of `saves` whose results are offloaded, as local indices. SpanPricer ignores this list.
  std::vector<int> offloaded = {};
  std::vector<RegionInput> offload_inputs = {};
  bool operator==(const RegionSaves&) const = default;
};

// The memory and the recompute work of one piece.
struct PieceFigures {
  Bytes held;  // bytes held from forward to the end of the piece's backward
  // Most bytes during the piece's backward. Includes `held`, and excludes the bytes of earlier
  // pieces.
  Bytes transient;
  Bytes demanded;  // like `transient`, but only from the piece's first demand on
  std::chrono::nanoseconds recompute{};
  std::int64_t num_recomputed = 0;  // ops
};

// One way to run a region. Its figures do not depend on the neighbours of the region.
struct RegionOption {
  LocalRange range;
  BlockPoint point;
  std::vector<StorageId> keeps;  // the storages of `point.kept`, ascending
};

class SpanPricer {
 public:
  // Prices the spans [first, first + num_spans) of the map. The references must outlive the pricer.
  SpanPricer(const SearchedTrace& searched, int first, int num_spans);

  // `regions` must be disjoint and in forward order. Autograd manages the ops outside them.
  LayerOption price(const std::vector<RegionSaves>& regions);

  // graph(), costs() and option_of() serve the search for save sets.
  const RegionGraph& graph(LocalRange range) { return piece(range).graph; }
  SaveSetCosts costs(LocalRange range);
  RegionOption option_of(LocalRange range, const BlockPoint& point);

  LocalRange whole() const { return {0, range_.end - range_.first}; }
  // Returns the bytes that backward of later spans has allocated when backward of this span begins.
  // The transients of pieces include these bytes.
  Bytes born() const { return map_.spans[last_].born; }

 private:
  friend class SpanTally;
  struct Piece {
    RegionGraph graph;
    // the largest number of bytes that backward has allocated at any time between backward of the
    // next piece and backward of this piece
    Bytes born_before;
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

// Note [Who pays for a storage] Of all pieces that hold a storage, only the first in forward order
// counts its bytes, because backward releases the storage there last. Pieces are therefore added in
// forward order.
//
// A later span may count the storage too: see SpanMap::owner. The storage is then part of that
// span's held bytes. A piece of an earlier span releases the storage later, so it counts the
// storage in its transient, but not in its held bytes.
class SpanTally {
 public:
  // Counts the storages that these spans own and that several spans read: see SpanMap::is_shared.
  // No piece counts them again. The pricer must outlive the tally.
  explicit SpanTally(SpanPricer& pricer);

  const PieceFigures& shared() const { return shared_; }
  // Pieces must be disjoint and added in forward order. Ops in no piece hold nothing.
  PieceFigures add_unmanaged(LocalRange range);
  PieceFigures add_region(const RegionOption& region);

  // Returns the storages that have been counted, ascending. The figures of later pieces depend on
  // earlier pieces only through these storages.
  const std::vector<StorageId>& paid() const { return paid_; }
  void set_paid(std::vector<StorageId> paid) { paid_ = std::move(paid); }

 private:
  // Counts the storage, unless it is already counted, an earlier span owns it, or it is alive for
  // the whole step. Returns whether this call has counted it.
  bool hold(StorageId storage);

  SpanPricer* pricer_;
  std::vector<StorageId> paid_;  // ascending
  PieceFigures shared_;
  Bytes held_here_;  // bytes that the current piece counts as held
  Bytes late_;       // bytes that the current piece counts in storages that later spans own
};

}  // namespace rematch
