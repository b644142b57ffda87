// Pipeline schedules: in which order a rank runs the forward and backward passes of its
// micro-batches. Knows neither bytes nor times.
//
// Note [1F1B] Stage s of p runs p - s - 1 forward passes first. It then alternates one forward and
// one backward, and ends with the remaining backward passes. So at most p - s micro-batches are in
// flight: their forward has run and their backward has not. Source: Narayanan et al. 2019
// (PipeDream-Flush).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

struct PipelineShape {
  std::int64_t num_stages = 1;
  std::int64_t micro_batches = 1;
};

// Returns the shape that a model's dimensions describe: one stage without a pipeline.
PipelineShape pipeline_shape(const std::map<std::string, std::int64_t>& dimensions);

// One pass of a stage over one micro-batch.
struct StagePass {
  enum class Kind : std::uint8_t { kForward, kBackward };
  Kind kind = Kind::kForward;
  std::int64_t micro_batch = 0;
  bool operator==(const StagePass&) const = default;
};

// Returns the passes of one stage in order, as 1F1B has them. Every stage runs its micro-batches in
// order, forward and backward.
std::vector<StagePass> stage_passes(const PipelineShape& shape, std::int64_t stage);

// How many other micro-batches are in flight while one pass runs: the maximum over all passes of a
// kind. Passes before the end of the first backward find no gradients, or only a part of them;
// later passes find the gradients of all parameters. Absent: the stage runs no such pass.
struct InFlight {
  std::optional<std::int64_t> first_forward;
  std::optional<std::int64_t> first_backward;
  std::optional<std::int64_t> later_forward;
  std::optional<std::int64_t> later_backward;
  bool operator==(const InFlight&) const = default;
};
InFlight in_flight(const PipelineShape& shape, std::int64_t stage);

}  // namespace rematch
