// Setup code that each pass over a point runs first in its process.
#pragma once

#include "harness/run/children/request.h"
#include "harness/training/training.h"
#include "reports/record/point.h"

namespace rematch {

class Job;

// Sets threads and the attention backend for the whole process. Call this before the first tensor
// is made.
void prepare_process(const PointRequest& request);

// Returns the settings for a Training with the request's model, data and optimizer. `job` must
// outlive the Training.
TrainingSettings training_settings(const PointRequest& request, Job& job);

// Records whether the timed steps use deterministic kernels.
void note_determinism(const PointRequest& request, PointRecord& record);

}  // namespace rematch
