// What one stretch, or several side by side, holds, needs and costs with given regions in it, byte
// for byte as the simulator has it. Inside this folder.
#pragma once

#include <map>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/search/layer_mix.h"
#include "policies/search/save_sets.h"
#include "policies/search/stretches.h"

namespace rematch {

// A region and what it keeps. Ops are local to the stretch.
struct PickedRegion {
  OpRange range;
  std::vector<int> saves;
  bool operator==(const PickedRegion&) const = default;
};

// A part of a stretch: a region, or what lies between regions.
struct PieceFigures {
  Bytes held;       // from forward to the end of its backward
  Bytes transient;  // most during its backward: held included, what earlier pieces hold not
  // Regions only: the part of the transient that is there whatever is kept.
  Bytes inputs;
  Bytes born_before;  // by backward, just before its own: the region then holds what it keeps
  bool is_region = false;
  Bytes born;         // by backward, before and in its own: the most
  OpId first_op = 0;  // local to the stretch
  std::chrono::nanoseconds recompute{};
  std::int64_t num_recomputed = 0;
};

class StretchPricer {
 public:
  // Stretches [first, first + num_stretches) of the map. References must outlive it.
  StretchPricer(const Trace& trace, const StretchMap& map, const OpTimes& times, int first,
                int num_stretches);

  // Regions in forward order, disjoint. Ops outside them are autograd's.
  LayerOption price(const std::vector<PickedRegion>& regions, Schedule schedule, bool early_stop);

  // Figures of regions as a plan has them, local to the stretch, in forward order.
  struct TypedRegion {
    OpRange range;
    RegionType type;
  };
  std::vector<PieceFigures> pieces_of(const std::vector<TypedRegion>& regions, Schedule schedule);

  // Piece by piece. Pieces that hold nothing are left out, and the
  // transients are with all that later stretches' backward has born.
  std::vector<PieceFigures> pieces_of(const std::vector<PickedRegion>& regions, Schedule schedule,
                                      bool early_stop);
  // Option of this stretch from its pieces.
  LayerOption option_of(const std::vector<PieceFigures>& pieces) const;

  // To search the save sets of a region with.
  const RegionGraph& graph(OpRange range);
  SaveSetCosts costs(OpRange range, Schedule schedule, bool early_stop);

  OpRange whole() const { return {0, range_.end - range_.first}; }

 private:
  struct Piece {
    RegionGraph graph;
    Bytes born_before;  // most, between the backward of the piece behind it and its own
  };
  class Tally;  // of held storages
  std::vector<TypedRegion> typed(const std::vector<PickedRegion>& regions, Schedule schedule,
                                 bool early_stop);

  bool owns(StorageId storage) const {
    return map_.owner[storage] >= first_ && map_.owner[storage] <= last_;
  }
  const Piece& piece(OpRange range);
  Bytes born_before(const RegionGraph& graph) const;

  const Trace& trace_;
  const StretchMap& map_;
  const OpTimes& times_;
  int first_;
  int last_;
  OpRange range_;
  std::map<std::pair<OpId, OpId>, Piece> pieces_;
};

}  // namespace rematch
