// The time of a pipeline's step, from the times of its stages.
//
// Note [Bubble] A stage waits while it has no input: at the beginning for the stages before, at the
// end for gradients, and in between if another stage is slower. The simulation runs every pass as
// soon as its stage is free and its input has arrived, in the schedule's order. So the time
// includes the whole bubble. Passing an activation or a gradient takes a constant time, and does
// not occupy a stage. The stages of one rank share it.
#pragma once

#include <vector>

#include "policies/predict/pipeline/schedule.h"
#include "policies/trace/profile.h"

namespace rematch {

// Times of one stage. The passes are those of one micro-batch, and backward includes recompute.
struct StageTime {
  Profile::Duration forward{};
  Profile::Duration backward{};   // with ZB-H1 without the weight gradients
  Profile::Duration optimizer{};  // once for each step
  Profile::Duration weights{};    // the weight pass of ZB-H1
  bool operator==(const StageTime&) const = default;
};

// Returns the times of a stage's micro-batch. `recompute` is the recompute time of a whole step,
// and `weights` the time of its weight passes.
StageTime stage_time(const Profile& profile, Profile::Duration recompute,
                     std::int64_t micro_batches, Profile::Duration weights = {});
// Returns the time of the weight passes that a stage has in its schedule: 0 without ZB-H1.
Profile::Duration weights_time(const Trace& stage, const Profile& profile);

// Returns the time in which an activation passes from a stage to `stage`, the next one, over a link
// of this rate.
Profile::Duration passing_time(const Trace& stage, double bytes_per_second);

struct PipelineTime {
  Profile::Duration step{};
  // The share of the step in which the average rank runs no pass and no optimizer.
  double bubble_ratio = 0;
};

// `stages` has one entry for each stage of the shape. `passing` is the time in which an activation
// reaches the next stage.
PipelineTime pipeline_time(const PipelineShape& shape, const std::vector<StageTime>& stages,
                           Profile::Duration passing);

}  // namespace rematch
