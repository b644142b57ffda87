#include "harness/profile/cuda_profile.h"

#include <memory>
#include <vector>

#include "harness/measure/clocks.h"
#include "harness/profile/activity.h"
#include "harness/profile/op_call_recorder.h"
#include "harness/profile/profiled_training.h"
#include "harness/profile/recorded_step.h"
#include "harness/profile/step_ops.h"

namespace rematch {
namespace {

// The allocator repeats itself; two steps show it where it does not.
constexpr int kWeighedSteps = 2;

// Points the recorder at the list of the phase.
class WeighedStep final : public StepListener {
 public:
  explicit WeighedStep(TemporaryRecorder& recorder) : recorder_(recorder) {}
  void before_step() override { recorder_.set_list(&forward); }
  void after_forward(const at::Tensor&) override { recorder_.set_list(&backward); }
  void after_backward() override { recorder_.set_list(nullptr); }

  std::vector<OpTemporary> forward;
  std::vector<OpTemporary> backward;

 private:
  TemporaryRecorder& recorder_;
};

class CudaProfile {
 public:
  CudaProfile(const Trace& trace, const TrainingSettings& settings, int num_steps)
      : trace_(trace),
        device_(settings.device),
        num_steps_(num_steps),
        training_(settings, 2 * num_steps + kWeighedSteps + 1) {}

  Profile run() {
    training_.warm_up();
    time_phases();
    weigh_ops();
    record_kernels();
    return measured_profile(trace_, "cuda", steps_);
  }

 private:
  void time_phases();
  void weigh_ops();
  void record_kernels();

  const Trace& trace_;
  at::Device device_;
  int num_steps_;
  ProfiledTraining training_;
  TimedSteps steps_;
};

void CudaProfile::time_phases() {
  PhaseClock clock(device_, steps_);
  for (int step = 0; step < num_steps_; ++step) training_.step(clock);
}

void CudaProfile::weigh_ops() {
  TemporaryRecorder recorder(device_);
  const OpObserverGuard observe(&recorder);
  for (int step = 0; step < kWeighedSteps; ++step) {
    WeighedStep weighed(recorder);
    training_.step(weighed);
    steps_.weighed.push_back(
        {bytes_of(weighed.forward, forward_names(trace_), "forward", "the GPU"),
         bytes_of(weighed.backward, backward_names(trace_), "backward", "the GPU")});
  }
}

// The recorder comes last: its buffers lie in device memory.
void CudaProfile::record_kernels() {
  const std::unique_ptr<ActivityRecorder> activity = record_activity();
  StepListener nobody;
  training_.step(nobody);  // what the first recorded step loads is no part of it
  synchronize(device_);
  activity->discard();
  OpCallRecorder recorder({activity.get()});
  RecordedStep listener(recorder);
  {
    const OpObserverGuard observe(&recorder);
    for (int step = 0; step < num_steps_; ++step) {
      recorder.begin_step(step);
      training_.step(listener);
    }
    synchronize(device_);
  }
  steps_.watched = times_of_steps(activity->finish(), recorder.calls(), trace_, num_steps_);
}

}  // namespace

Profile profile_on_cuda(const Trace& trace, const TrainingSettings& settings, int num_steps) {
  return CudaProfile(trace, settings, num_steps).run();
}

}  // namespace rematch
