// Setup code that every pass over a point runs first in its process.
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
// outlive that Training.
TrainingSettings training_settings(const PointRequest& request, Job& job);

// Records in the point's time whether the timed steps use kernels that give the same bits every
// time.
void note_determinism(const PointRequest& request, PointRecord& record);

}  // namespace rematch
