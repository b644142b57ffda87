#include "harness/run/passes/point_process.h"

#include <ATen/Parallel.h>

#include "harness/run/children/job.h"
#include "harness/training/device.h"
#include "kernels/attention/backend.h"
#include "kernels/grouped/grouped_mm.h"

namespace rematch {

TrainingSettings training_settings(const PointRequest& request, Job& job) {
  TrainingSettings settings;
  settings.model = job.spec();
  settings.data_file = request.data_file;
  settings.seed = request.identity.seed;
  settings.device = job.device();
  settings.optimizer = optimizer_from_string(request.identity.optimizer).value();
  settings.stage_link = job.stage_link();
  settings.begin_step = [&job](std::int64_t step) { job.begin_step(step); };
  if (request.pass == Pass::kTime) settings.determinism = request.timed_as;
  return settings;
}

void prepare_process(const PointRequest& request) {
  at::set_num_threads(request.identity.threads);
  use_attention_backend(attention_backend_from_string(request.identity.attention_backend).value());
  if (request.libtorch_chooses_attention) use_attention_of_libtorch();
  // All passes use the kernels of the captured step, so that they describe it.
  if (request.cuda_graph) use_grouped_mm_on_device();
}

void note_determinism(const PointRequest& request, PointRecord& record) {
  if (!device_named(request.device).is_cuda()) return;
  record.time->repeatable_bits = request.timed_as == Determinism::kRepeatableBits;
}

}  // namespace rematch
