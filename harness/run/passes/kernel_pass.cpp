#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "harness/measure/clocks.h"
#include "harness/measure/cuda_device.h"
#include "harness/profile/activity.h"
#include "harness/profile/allocator_snapshot.h"
#include "harness/profile/attribution.h"
#include "harness/profile/nvtx_marker.h"
#include "harness/profile/recorded_step.h"
#include "harness/run/passes/passes.h"
#include "kernels/attention/backend.h"
#include "policies/base/file.h"

namespace rematch {
namespace {

// Returns the seconds of the fastest step, until its kernels have ended.
double run_steps(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                 StepListener& listener) {
  double fastest = std::numeric_limits<double>::max();
  for (int step = 0; step < num_steps; ++step) {
    const auto start = now_on(device);
    training.step(first_step + step, listener);
    const std::chrono::duration<double> elapsed = now_on(device) - start;
    fastest = std::min(fastest, elapsed.count());
  }
  return fastest;
}

// If the device's activity cannot be recorded, returns null and writes the reason to the record.
std::unique_ptr<ActivityRecorder> start_to_record(PointRecord& record) {
  try {
    return record_activity();
  } catch (const ActivityError& error) {
    record.kernels_reason = error.what();
    return nullptr;
  }
}

AttentionKernels attention_kernels_of(const PointIdentity& identity) {
  return identity.attention_backend == to_string(AttentionBackend::kMath)
             ? AttentionKernels::kComposed
             : AttentionKernels::kFused;
}

// On the dry device every kernel and copy takes the same time, so the times are meaningless.
void forget_times(KernelRecord& kernels) {
  for (auto& phase : kernels.time) phase.clear();
  kernels.unknown_times.clear();
  for (auto* transfers : {&kernels.offload_copies, &kernels.unattributed_transfers}) {
    if (transfers->has_value()) (*transfers)->time.reset();
  }
}

}  // namespace

void kernel_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                 PointRecord& record) {
  const int counted_steps = std::max(2, num_steps);
  StepListener nobody;
  const double without = run_steps(training, device, first_step, counted_steps, nobody);
  const std::unique_ptr<ActivityRecorder> activity = start_to_record(record);
  // The first recorded step compiles and loads kernels, so it is not counted.
  const std::int64_t warm_up_step = first_step + counted_steps;
  run_steps(training, device, warm_up_step, 1, nobody);
  if (activity != nullptr) activity->discard();

  NvtxMarker names(nvtx_functions());
  std::vector<LaunchMarker*> markers = {&names};
  if (activity != nullptr) markers.push_back(activity.get());
  OpCallRecorder recorder(markers);
  RecordedStep listener(recorder);
  double with = 0;
  {
    const OpObserverGuard observe(&recorder);
    const ObservedMoves moves(training, recorder);
    with = run_steps(training, device, warm_up_step + 1, counted_steps, listener);
  }
  if (activity == nullptr) return;
  try {
    const KernelUse use =
        attribute(activity->finish(), recorder.calls(), attention_kernels_of(record.identity));
    record.kernels = kernel_record(use, recorder.counts(counted_steps));
    if (on_dry_device()) {
      forget_times(*record.kernels);
      return;
    }
    record.kernels->slowdown_ratio = with / without;
    if (record.kernels->invalid.empty()) {
      record.time = TimeRecord{.classes = op_class_times(use, counted_steps)};
    }
  } catch (const ActivityError& error) {
    record.kernels_reason = error.what();
  }
}

void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position) {
  position = {"snapshot", -1, {}};
  AllocationMarker names;
  OpCallRecorder recorder({&names});
  RecordedStep listener(recorder);
  record_allocations();
  {
    const OpObserverGuard observe(&recorder);
    training.step(step, listener);
  }
  write_file_atomically(file, take_allocator_snapshot());
}

}  // namespace rematch
