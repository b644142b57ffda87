#include "policies/predict/pipeline/schedule.h"

#include <algorithm>

#include "policies/trace/accumulation.h"

namespace rematch {

PipelineShape pipeline_shape(const std::map<std::string, std::int64_t>& dimensions) {
  const auto size_of = [&](std::string_view name) {
    const auto found = dimensions.find(std::string(name));
    return found == dimensions.end() ? std::int64_t{1} : found->second;
  };
  return {size_of(kPipeline), size_of(kAccumulate)};
}

std::vector<StagePass> stage_passes(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t num = shape.micro_batches;
  const std::int64_t ahead = std::min(shape.num_stages - stage - 1, num);
  std::vector<StagePass> passes;
  for (std::int64_t next = 0; next < num + ahead; ++next) {
    if (next < num) passes.push_back({StagePass::Kind::kForward, next});
    if (next >= ahead) passes.push_back({StagePass::Kind::kBackward, next - ahead});
  }
  return passes;
}

InFlight in_flight(const PipelineShape& shape, std::int64_t stage) {
  InFlight most;
  std::int64_t num = 0;
  bool has_gradients = false;
  const auto raise = [](std::optional<std::int64_t>& number, std::int64_t to) {
    number = std::max(number.value_or(0), to);
  };
  for (const StagePass& pass : stage_passes(shape, stage)) {
    if (pass.kind == StagePass::Kind::kForward) {
      raise(has_gradients ? most.later_forward : most.first_forward, num);
      ++num;
    } else {
      --num;
      raise(has_gradients ? most.later_backward : most.first_backward, num);
      has_gradients = true;
    }
  }
  return most;
}

}  // namespace rematch
