// Pipeline schedules: in which order a rank runs the passes of its micro-batches, and which other
// micro-batches it holds meanwhile. Knows neither bytes nor times.
//
// Note [1F1B] Rank r of p runs p - r - 1 forward passes first. It then alternates one forward and
// one backward, and ends with the remaining backward passes. So at most p - r micro-batches are in
// flight. Source: Narayanan et al. 2019 (PipeDream-Flush).
//
// Note [Interleaved 1F1B] Each rank runs v stages: stage s runs on rank s % p. The rank takes p
// micro-batches through its first stage, then the same p through its second stage, and so on.
// Backward takes the stages in reverse order. Rank r runs 2 (p - r - 1) + (v - 1) p forward passes
// before it alternates. The number of micro-batches must be a multiple of p, as in Megatron-LM.
// Sources: Narayanan et al. 2021; NVIDIA/Megatron-LM, core/pipeline_parallel/schedules.py; torch,
// distributed/pipelining/schedules.py, ScheduleInterleaved1F1B.
//
// Note [ZB-H1] Backward is split into a pass for the gradients of inputs and a pass for the
// gradients of weights. The first pass follows 1F1B, so the stage before gets its gradient earlier.
// Rank r delays the weight pass by r micro-batches. So each rank holds at most p micro-batches
// whose weight pass has not run, like rank 0 in 1F1B. Sources: Qi et al. 2024 (Zero Bubble Pipeline
// Parallelism); torch, distributed/pipelining/schedules.py, ScheduleInterleavedZeroBubble, which
// has the same order with one stage on each rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

struct PipelineShape {
  std::int64_t num_ranks = 1;
  std::int64_t micro_batches = 1;
  std::int64_t stages_per_rank = 1;  // above 1: Note [Interleaved 1F1B]
  bool splits_backward = false;      // true: Note [ZB-H1]

  std::int64_t num_stages() const { return num_ranks * stages_per_rank; }
  // Returns the stages of a rank, in order.
  std::vector<std::int64_t> stages_of(std::int64_t rank) const;
};

// Returns the shape that a model's dimensions describe: one stage without a pipeline.
PipelineShape pipeline_shape(const std::map<std::string, std::int64_t>& dimensions);

// Returns "1F1B", "interleaved 1F1B" or "ZB-H1".
std::string_view schedule_name(const PipelineShape& shape);

// One pass of a stage over one micro-batch.
struct StagePass {
  // kWeights computes the weight gradients. Only ZB-H1 has such passes; elsewhere kBackward
  // computes all gradients.
  enum class Kind : std::uint8_t { kForward, kBackward, kWeights };
  Kind kind = Kind::kForward;
  std::int64_t micro_batch = 0;
  std::int64_t stage = 0;
  bool operator==(const StagePass&) const = default;
};

// Returns the passes of one rank in order. Each stage runs its micro-batches in order, in every
// kind of pass.
std::vector<StagePass> rank_passes(const PipelineShape& shape, std::int64_t rank);

// Counts what a stage holds while a pass runs, apart from the micro-batch of that pass.
struct HeldByStage {
  std::int64_t in_flight = 0;    // micro-batches whose forward has run, and whose backward has not
  std::int64_t for_weights = 0;  // micro-batches that wait for their weight pass only
  bool has_gradients = false;    // a backward pass has ended
  bool has_weight_gradients = false;  // a weight pass has ended; equals has_gradients without ZB-H1
  auto operator<=>(const HeldByStage&) const = default;
};

// A pass, and what the stages of its rank hold meanwhile. Passes that differ only in the number of
// their micro-batch are one moment.
struct PassMoment {
  StagePass::Kind kind = StagePass::Kind::kForward;
  std::size_t stage = 0;          // position among the stages of the rank
  std::vector<HeldByStage> held;  // one entry for each stage of the rank
  auto operator<=>(const PassMoment&) const = default;
};

// Returns the different moments of one rank's step.
std::vector<PassMoment> pass_moments(const PipelineShape& shape, std::int64_t rank);

// Returns the most micro-batches of one stage that are in flight, including the running one. They
// do not include micro-batches that wait for their weight pass only.
std::int64_t most_in_flight(const PipelineShape& shape, std::int64_t stage);

}  // namespace rematch
