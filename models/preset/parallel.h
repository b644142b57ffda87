// Layouts: how one step is sharded over ranks. Independent of LibTorch. A layout is part of a
// ModelSpec's dimensions. An option that the layout does not contain is off. The options are:
//   tp=N       tensor parallel: heads and hidden widths are split over N ranks
//   sp         sequence parallel: layers that tp does not split process a part of the tokens
//   ulysses=N  tokens are split over N ranks; attention exchanges tokens for heads
//   cp=N       context parallel: tokens are split over N ranks; attention gathers keys and values
//   ring       with cp: attention sends keys and values around the ranks, and gathers nothing
//   ep=N       experts are split over N ranks, each with its own data
//   fsdp=N     parameters are sharded over N ranks, each with its own data
//   product    ep and fsdp multiply the ranks: see Note [Experts inside fsdp]
//   pp=N       pipeline: N stages of consecutive blocks, each on its own ranks; see StageBlocks
//   micro=M    micro-batches of a pipeline's step; the same dimension as --accumulate
//   interleave=V  with pp: each rank runs V stages, by the schedule interleaved 1F1B
//   zb         with pp: the schedule ZB-H1, which computes gradients of weights later
//   first_layers=K, last_layers=K  blocks of the first and of the last stage of a pipeline; the
//              other stages share the rest
//   stages=K/L/...  with pp: the blocks of every stage
//   balanced_routing  every expert gets the same number of rows, regardless of the router's scores;
//              for benchmarks
//
// Note [Ranks of a layout] The world has pp x fsdp x ep x ulysses x tp ranks, or pp x fsdp x
// ulysses x tp if ep is inside fsdp. The position along tp varies fastest, and the position along
// pp slowest. Ranks that differ only in tp, ulysses, cp or pp see the same batch. Other ranks see
// different batches. With fsdp, its ranks include the ranks of cp: "cp=2,fsdp=8" has eight ranks,
// which shard all parameters, and four batches. torchtitan's mesh "fsdp" is the same: its
// data-parallel shards times cp. Without fsdp, the world is cp times as large, and the ranks of cp
// replicate the parameters.
//
// With interleave=V a rank runs V stages. Stage s is on position s % N of pp. To describe a later
// stage of a rank, a spec has a rank of at least the size of the world: rank + world_size is the
// same rank at its second stage. Such specs are traced, and never run.
//
// Note [Chunks of a sequence] cp=N cuts every sequence into 2N chunks. Rank r has chunks r and
// 2N-1-r. Under the causal mask late tokens attend to more keys than early ones, and this pairing
// gives all ranks the same work.
//
// Note [Experts inside fsdp] "fsdp=8,ep=4" has eight ranks. Four consecutive ranks of fsdp hold all
// experts, a quarter each. The two ranks with the same experts shard them between each other, in
// group "expert_fsdp". All eight ranks shard the other parameters. torchtitan and DeepSpeed
// understand ep like this. "fsdp=8,ep=4,product" has 32 ranks: eight ranks shard each expert, and
// the other parameters are replicated over ep. Dimension expert_fsdp tells the two forms apart: it
// is 2 in the first form, and absent in the second. Specs that were stored before the first form
// existed have no such dimension, so they keep their meaning and their hash.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/preset/preset.h"
#include "policies/base/rejected.h"

namespace rematch {

inline constexpr std::int64_t kMaxWorld = 4096;

// Dimension of a layout with ep inside fsdp, and name of the group: Note [Experts inside fsdp].
inline constexpr std::string_view kExpertFsdp = "expert_fsdp";

// The options of a layout, in the order in which a layout is written. These options are not
// command-line flags.
const std::vector<DimensionEntry>& layout_entries();

// Dimensions with the blocks of each stage: "stages=5/7" is stage_0_layers 5 and stage_1_layers 7.
const std::vector<DimensionEntry>& stage_entries();

// Parses text such as "tp=2,sp,fsdp=4" into overrides for make_spec, which checks them against a
// model. Keeps sizes of 1, because an override with size 1 turns the option off. For the same
// reason, expert_fsdp is 0 if ep and fsdp are given but ep is not inside fsdp.
std::variant<std::map<std::string, std::int64_t>, Rejected> parse_layout(std::string_view text);

// Formats the layout in a spec's dimensions as text that parse_layout reads. Returns "" if there is
// no layout.
std::string layout_text(const std::map<std::string, std::int64_t>& dimensions);

// Returns the number of ranks that a step runs on, which is 1 without a layout.
std::int64_t world_size(const std::map<std::string, std::int64_t>& dimensions);
inline std::int64_t world_size(const ModelSpec& spec) { return world_size(spec.dimensions); }

// One axis of a layout: the number of ranks along it, and the position of spec.rank.
struct RankAxis {
  std::string name;  // name of the group, such as "tp"
  std::int64_t size = 1;
  std::int64_t position = 0;

  bool is_split() const { return size > 1; }
};
RankAxis rank_axis(const ModelSpec& spec, std::string_view name);
// Returns the axis along which the parameters of an expert are sharded: "expert_fsdp" if ep is
// inside fsdp, and "fsdp" otherwise.
RankAxis expert_shards(const ModelSpec& spec);

// The ranks that spec.rank communicates with along one axis, including spec.rank itself.
struct RankGroup {
  std::string name;
  std::vector<int> ranks;  // rank at each position
  int position = 0;        // position of spec.rank
};
// Returns the groups that have more than one rank, in the order tp, ulysses, cp, ep, expert_fsdp,
// fsdp, pp.
std::vector<RankGroup> rank_groups(const ModelSpec& spec);

// data_ranks() returns the number of different batches in one step. data_index() returns the index
// of the batch that spec.rank takes from a DataSource at `step`.
std::int64_t data_ranks(const ModelSpec& spec);
std::int64_t data_index(const ModelSpec& spec, std::int64_t step);

// The consecutive blocks [first, end) of one stage of a pipeline. The first stage also has the
// embedding, and the last stage the head and the loss. Without a pipeline one stage has all blocks.
struct StageBlocks {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t stage = 0;
  std::int64_t num_stages = 1;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == num_stages; }
  bool is_whole() const { return num_stages == 1; }
};
// Returns the blocks of one stage, or of the stage of spec.rank. Stages have equally many blocks.
// If they do not divide, the stages after the first have one block more.
StageBlocks stage_blocks(const ModelSpec& spec, std::int64_t stage);
StageBlocks stage_blocks(const ModelSpec& spec);
// Returns the number of stages of a pipeline: pp times interleave.
std::int64_t num_stages(const std::map<std::string, std::int64_t>& dimensions);

}  // namespace rematch
