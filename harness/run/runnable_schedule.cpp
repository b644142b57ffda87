#include "harness/run/runnable_schedule.h"

#include "policies/predict/pipeline/schedule.h"
#include "policies/trace/accumulation.h"

namespace rematch {

std::optional<Rejected> reject_unrunnable_schedule(
    const std::map<std::string, std::int64_t>& dimensions) {
  const PipelineShape shape = pipeline_shape(dimensions);
  if (shape.stages_per_rank == 1 && !shape.splits_backward) return std::nullopt;
  return Rejected{"run has the schedule 1F1B only; leave out " +
                  std::string(shape.splits_backward ? kZeroBubble : kInterleave) +
                  ", or predict and search " + std::string(schedule_name(shape)) +
                  " with rematch predict and rematch search"};
}

}  // namespace rematch
