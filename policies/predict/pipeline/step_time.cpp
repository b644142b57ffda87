#include "policies/predict/pipeline/step_time.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "policies/predict/pipeline/split_backward.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

using Kind = StagePass::Kind;

// One rank while the step is simulated.
struct SimulatedRank {
  std::vector<StagePass> passes;
  std::size_t next = 0;
  Duration free_at{};
};

// When the passes of one stage have ended: one entry for each micro-batch that has run.
struct EndedPasses {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
};

Duration time_of(const StageTime& stage, Kind kind) {
  if (kind == Kind::kForward) return stage.forward;
  return kind == Kind::kBackward ? stage.backward : stage.weights;
}

}  // namespace

StageTime stage_time(const Profile& profile, Duration recompute, std::int64_t micro_batches,
                     Duration weights) {
  return {profile.forward_time() / micro_batches,
          (profile.backward_time() - weights + recompute) / micro_batches, profile.optimizer,
          weights / micro_batches};
}

Duration weights_time(const Trace& stage, const Profile& profile) {
  const bool splits = pipeline_shape(stage.dimensions).splits_backward;
  return splits ? weight_pass_time(stage, profile) : Duration{};
}

Duration passing_time(const Trace& stage, double bytes_per_second) {
  const auto bytes = static_cast<double>(stage.stage.value().held_bytes.count);
  return Duration(std::llround(bytes / bytes_per_second * 1e9));
}

PipelineTime pipeline_time(const PipelineShape& shape, const std::vector<StageTime>& stages,
                           Duration passing) {
  const std::size_t num = stages.size();
  if (num != static_cast<std::size_t>(shape.num_stages())) {
    throw std::invalid_argument("there are times of " + std::to_string(num) + " stages for " +
                                std::to_string(shape.num_stages()));
  }
  std::vector<SimulatedRank> ranks(static_cast<std::size_t>(shape.num_ranks));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].passes = rank_passes(shape, static_cast<std::int64_t>(rank));
  }
  std::vector<EndedPasses> ended(num);
  // Returns when the input of a pass arrives; nullopt if its sender has not run yet.
  const auto arrival = [&](const StagePass& pass) -> std::optional<Duration> {
    const auto stage = static_cast<std::size_t>(pass.stage);
    const bool is_forward = pass.kind == Kind::kForward;
    if (pass.kind == Kind::kWeights || (is_forward ? stage == 0 : stage + 1 == num)) {
      return Duration{};
    }
    const std::vector<Duration>& ends =
        is_forward ? ended[stage - 1].forward : ended[stage + 1].backward;
    const auto index = static_cast<std::size_t>(pass.micro_batch);
    if (index >= ends.size()) return std::nullopt;
    return ends[index] + passing;
  };
  for (bool progresses = true; progresses;) {
    progresses = false;
    for (SimulatedRank& rank : ranks) {
      while (rank.next < rank.passes.size()) {
        const StagePass& pass = rank.passes[rank.next];
        const std::optional<Duration> arrives = arrival(pass);
        if (!arrives) break;
        const auto stage = static_cast<std::size_t>(pass.stage);
        rank.free_at = std::max(rank.free_at, *arrives) + time_of(stages[stage], pass.kind);
        if (pass.kind == Kind::kForward) ended[stage].forward.push_back(rank.free_at);
        if (pass.kind == Kind::kBackward) ended[stage].backward.push_back(rank.free_at);
        ++rank.next;
        progresses = true;
      }
    }
  }
  PipelineTime time;
  Duration busy{};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Duration optimizer{};
    for (std::size_t stage = rank; stage < num; stage += ranks.size()) {
      optimizer += stages[stage].optimizer;
      busy += (stages[stage].forward + stages[stage].backward + stages[stage].weights) *
              shape.micro_batches;
    }
    time.step = std::max(time.step, ranks[rank].free_at + optimizer);
    busy += optimizer;
  }
  if (time.step.count() > 0) {
    time.bubble_ratio =
        1 - static_cast<double>(busy.count()) /
                (static_cast<double>(ranks.size()) * static_cast<double>(time.step.count()));
  }
  return time;
}

}  // namespace rematch
