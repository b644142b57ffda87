#include "harness/run/passes/passes.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <new>
#include <optional>
#include <string>

#include "harness/measure/cuda_device.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/profile/allocator_snapshot.h"
#include "harness/ranks/collective_log.h"
#include "harness/run/children/out_of_memory.h"
#include "harness/run/children/rank_records.h"
#include "harness/run/passes/early_end.h"
#include "harness/run/passes/point_process.h"
#include "harness/training/device.h"
#include "kernels/attention/backend.h"
#include "policies/base/file.h"
#include "policies/plan/stage_plans.h"

namespace rematch {
namespace {

// Counts the executed ops. With several ranks, compares each step's collectives with the
// collectives of the other ranks.
RanksRecord::Counts counting_pass(Training& training, Job& job, std::int64_t first_step,
                                  int num_steps, PassPosition& position, PointRecord& record) {
  position = {"counting", -1, {}};
  OpCounter counter;
  CollectiveLog log;
  OpObservers both({&log, &counter});
  Watching listener(position);
  {
    OpObserver* const whole = &both;
    const OpObserverGuard observe(job.is_alone() ? &counter : whole);
    for (int step = 0; step < num_steps; ++step) {
      log.begin_step();
      training.step(first_step + step, listener);
      job.compare(log);
    }
  }
  record.counts = counter.record(num_steps);
  return log.totals().bytes;
}

void exact_passes(const PointRequest& request, Job& job, Training& training, PassPosition& position,
                  PointRecord& record) {
  const at::Device device = job.device();
  record.warm_up_steps = kWarmUpSteps;
  std::int64_t step = 0;
  if (computes_values(request.device) && !job.is_pretended()) {
    parity_pass(training, job, request.num_steps, position, record);
    step = request.num_steps;
  }
  const int missing = kWarmUpSteps - static_cast<int>(step);
  if (missing > 0) {
    warm_up(training, step, missing, position);
    step += missing;
  }
  const RanksRecord::Counts collective_bytes =
      counting_pass(training, job, step, request.num_steps, position, record);
  record.memory = memory_pass(training, device, step + request.num_steps, position);
  if (!job.is_alone()) note_rank(job.rank(), collective_bytes, record);
  step += request.num_steps + 1;
  if (record.memory->host && computes_values(request.device)) {
    copy_time_pass(training, device, step, request.num_steps, position, *record.memory->host);
  }
  if (!device.is_cuda()) return;
  position = {"kernel", -1, {}};
  kernel_pass(training, device, step, request.num_steps, record);
  if (!request.snapshot_file.empty()) {
    snapshot_pass(training, step - 1, request.snapshot_file, position);
  }
  if (request.cuda_graph) replay_pass(training, device, step, position, record);
}

void measure(const PointRequest& request, PassPosition& position, PointRecord& record) {
  Job job(request);
  // Recording starts before the model is made, so that the snapshot is useful even if the model
  // does not fit.
  if (!request.snapshot_file.empty()) record_allocations();
  Training training(training_settings(request, job));
  const auto stage = static_cast<std::size_t>(training.stage().stage);
  const bool is_whole = training.stage().is_whole();
  training.use_plan(is_whole ? request.plan : plan_of_stage(request.plan, stage),
                    request.identity.schedule);
  if (request.pass == Pass::kExact) {
    exact_passes(request, job, training, position, record);
  } else if (request.pass == Pass::kParity) {
    parity_pass(training, job, request.num_steps, position, record);
  } else {
    const StepsToTime steps{0, request.num_steps, warm_up_of_process(job.device()),
                            request.cuda_graph};
    time_pass(training, job, steps, position, record);
    note_determinism(request, record);
  }
}

}  // namespace

PointRecord run_passes(const PointRequest& request) {
  if (request.pass != Pass::kTime) {
    install_counting_allocators();
    reset_memory_peaks();
  }
  prepare_process(request);
  PointRecord record = empty_record(request);
  PassPosition position;
  run_to_early_end(position, device_named(request.device), record,
                   [&] { measure(request, position, record); });
  if (record.status == PointStatus::kOom && !request.snapshot_file.empty()) {
    write_file_atomically(request.snapshot_file, take_allocator_snapshot());
  }
  return record;
}

}  // namespace rematch
