// Layouts: how one step is sharded over ranks, without LibTorch. A layout is part of a ModelSpec's
// dimensions, as options that are off when absent:
//   tp=N       tensor parallel: heads and hidden widths split over N ranks
//   sp         sequence parallel: what tp leaves whole works on a part of the tokens
//   ulysses=N  tokens split over N ranks; attention exchanges them for heads
//   ep=N       experts split over N ranks, each with data of its own
//   fsdp=N     parameters sharded over N ranks, each with data of its own
//   balanced_routing  every expert gets as many rows, whatever the router says: for benchmarks
//
// Note [Ranks of a layout]
// The world is fsdp x ep x ulysses x tp ranks; tp varies fastest, fsdp slowest. Ranks that differ
// in tp or ulysses alone see the same batch, all others a batch of their own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/preset/preset.h"

namespace rematch {

inline constexpr std::int64_t kMaxWorld = 4096;

// The options of a layout, in the order in which a layout is written. They are not flags.
const std::vector<DimensionEntry>& layout_entries();

// "tp=2,sp,fsdp=4" as overrides for make_spec, which checks them against a model. Sizes of 1 are
// kept: they turn off what a spec had.
std::variant<std::map<std::string, std::int64_t>, Rejected> parse_layout(std::string_view text);

// The layout among a spec's dimensions, as parse_layout reads it; empty without one.
std::string layout_text(const std::map<std::string, std::int64_t>& dimensions);

// Ranks that a step runs on: 1 without a layout.
std::int64_t world_size(const std::map<std::string, std::int64_t>& dimensions);
inline std::int64_t world_size(const ModelSpec& spec) { return world_size(spec.dimensions); }

// The place of spec.rank along one option of its layout.
struct RankAxis {
  std::string name;  // of the group: "tp"
  std::int64_t size = 1;
  std::int64_t position = 0;

  bool is_split() const { return size > 1; }
};
RankAxis rank_axis(const ModelSpec& spec, std::string_view name);

// The ranks of the world that spec.rank talks to along one option, itself among them.
struct RankGroup {
  std::string name;
  std::vector<int> ranks;  // by position
  int position = 0;        // of spec.rank
};
// Those of more than one rank: tp, ulysses, ep, fsdp, where the layout has them.
std::vector<RankGroup> rank_groups(const ModelSpec& spec);

// Ranks' batches: how many differ in one step, and which of a DataSource's is spec.rank's.
std::int64_t data_ranks(const ModelSpec& spec);
std::int64_t data_index(const ModelSpec& spec, std::int64_t step);

}  // namespace rematch
