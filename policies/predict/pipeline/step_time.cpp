#include "policies/predict/pipeline/step_time.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

namespace rematch {
namespace {

using Duration = Profile::Duration;

// One stage while the step is simulated.
struct SimulatedStage {
  std::vector<StagePass> passes;
  std::size_t next = 0;
  Duration free_at{};
  std::vector<Duration> forward_ends;  // one entry for each micro-batch that has run
  std::vector<Duration> backward_ends;
};

}  // namespace

StageTime stage_time(const Profile& profile, Duration recompute, std::int64_t micro_batches) {
  return {profile.forward_time() / micro_batches,
          (profile.backward_time() + recompute) / micro_batches, profile.optimizer};
}

Duration passing_time(const Trace& stage, double bytes_per_second) {
  const auto bytes = static_cast<double>(stage.stage.value().held_bytes.count);
  return Duration(std::llround(bytes / bytes_per_second * 1e9));
}

PipelineTime pipeline_time(const PipelineShape& shape, const std::vector<StageTime>& stages,
                           Duration passing) {
  const std::size_t num = stages.size();
  if (num != static_cast<std::size_t>(shape.num_stages)) {
    throw std::invalid_argument("there are times of " + std::to_string(num) + " stages for " +
                                std::to_string(shape.num_stages));
  }
  std::vector<SimulatedStage> simulated(num);
  for (std::size_t stage = 0; stage < num; ++stage) {
    simulated[stage].passes = stage_passes(shape, static_cast<std::int64_t>(stage));
  }
  // Returns when the input of a stage's next pass arrives; nullopt if its sender has not run yet.
  const auto arrival = [&](std::size_t stage) -> std::optional<Duration> {
    const StagePass& pass = simulated[stage].passes[simulated[stage].next];
    const bool is_forward = pass.kind == StagePass::Kind::kForward;
    if (is_forward ? stage == 0 : stage + 1 == num) return Duration{};
    const SimulatedStage& sender = simulated[is_forward ? stage - 1 : stage + 1];
    const std::vector<Duration>& ends = is_forward ? sender.forward_ends : sender.backward_ends;
    const auto index = static_cast<std::size_t>(pass.micro_batch);
    if (index >= ends.size()) return std::nullopt;
    return ends[index] + passing;
  };
  for (bool progresses = true; progresses;) {
    progresses = false;
    for (std::size_t index = 0; index < num; ++index) {
      SimulatedStage& stage = simulated[index];
      while (stage.next < stage.passes.size()) {
        const std::optional<Duration> arrives = arrival(index);
        if (!arrives) break;
        const bool is_forward = stage.passes[stage.next].kind == StagePass::Kind::kForward;
        stage.free_at = std::max(stage.free_at, *arrives) +
                        (is_forward ? stages[index].forward : stages[index].backward);
        (is_forward ? stage.forward_ends : stage.backward_ends).push_back(stage.free_at);
        ++stage.next;
        progresses = true;
      }
    }
  }
  PipelineTime time;
  Duration busy{};
  for (std::size_t index = 0; index < num; ++index) {
    const StageTime& stage = stages[index];
    time.step = std::max(time.step, simulated[index].free_at + stage.optimizer);
    busy += (stage.forward + stage.backward) * shape.micro_batches + stage.optimizer;
  }
  if (time.step.count() > 0) {
    time.bubble_ratio = 1 - static_cast<double>(busy.count()) /
                                (static_cast<double>(num) * static_cast<double>(time.step.count()));
  }
  return time;
}

}  // namespace rematch
