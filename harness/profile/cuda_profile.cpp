#include "harness/profile/cuda_profile.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <utility>

#include "harness/profile/cupti_functions.h"
#include "harness/profile/cupti_session.h"
#include "harness/profile/op_call_recorder.h"
#include "harness/profile/step_ops.h"
#include "harness/profile/temporary_recorder.h"
#include "harness/run/recorded_step.h"
#include "harness/sweep/interrupt.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

// Two full steps, as before any figure: the optimizer's state is born in the first.
constexpr int kWarmUpSteps = 2;
// The allocator repeats itself; two steps show it where it does not.
constexpr int kWeighedSteps = 2;

void stop_if_interrupted() {
  if (const auto signal = InterruptGuard::signal()) {
    throw Interrupted(*signal, "the ops were not all timed, so there are no times to go by");
  }
}

// What was launched counts when it has run.
class PhaseClock final : public StepListener {
 public:
  PhaseClock(at::Device device, TimedSteps& steps) : device_(device), steps_(steps) {}
  void before_step() override { start_ = now(); }
  void after_forward(const at::Tensor&) override { forward_ = now(); }
  void after_backward() override { backward_ = now(); }
  void after_optimizer() override {
    const Clock::time_point end = now();
    steps_.forward.emplace_back(forward_ - start_);
    steps_.backward.emplace_back(backward_ - forward_);
    steps_.optimizer.emplace_back(end - backward_);
  }

 private:
  Clock::time_point now() const {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
    return Clock::now();
  }

  at::Device device_;
  TimedSteps& steps_;
  Clock::time_point start_;
  Clock::time_point forward_;
  Clock::time_point backward_;
};

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
  CudaProfile(const Trace& trace, const TrainingSettings& settings)
      : trace_(trace), device_(settings.device), training_(settings) {}

  Profile run(int num_steps) {
    StepListener nobody;
    for (int step = 0; step < kWarmUpSteps; ++step) run_step(nobody);
    time_phases(num_steps);
    weigh_ops();
    record_kernels(num_steps);
    return measured_profile(trace_, "cuda", steps_);
  }

 private:
  void time_phases(int num_steps);
  void weigh_ops();
  void record_kernels(int num_steps);
  void run_step(StepListener& listener) {
    stop_if_interrupted();
    training_.step(next_step_++, listener);
  }
  void synchronize() const {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }

  const Trace& trace_;
  at::Device device_;
  Training training_;
  std::int64_t next_step_ = 0;
  TimedSteps steps_;
};

void CudaProfile::time_phases(int num_steps) {
  PhaseClock clock(device_, steps_);
  for (int step = 0; step < num_steps; ++step) run_step(clock);
}

void CudaProfile::weigh_ops() {
  TemporaryRecorder recorder(device_);
  const OpObserverGuard observe(&recorder);
  for (int step = 0; step < kWeighedSteps; ++step) {
    WeighedStep weighed(recorder);
    run_step(weighed);
    steps_.weighed.push_back(
        {bytes_of(weighed.forward, forward_names(trace_), "forward", "the GPU"),
         bytes_of(weighed.backward, backward_names(trace_), "backward", "the GPU")});
  }
}

// The session comes last: its buffers lie in device memory.
void CudaProfile::record_kernels(int num_steps) {
  const CuptiFunctions functions = load_cupti();
  CuptiSession session(functions);
  StepListener nobody;
  run_step(nobody);  // what the first recorded step loads is no part of it
  synchronize();
  session.discard();
  OpCallRecorder recorder({&session});
  RecordedStep listener(recorder);
  {
    const OpObserverGuard observe(&recorder);
    for (int step = 0; step < num_steps; ++step) {
      recorder.begin_step(step);
      run_step(listener);
    }
    synchronize();
  }
  steps_.watched = times_of_steps(session.finish(), recorder.calls(), trace_, num_steps);
}

}  // namespace

Profile profile_on_cuda(const Trace& trace, const TrainingSettings& settings, int num_steps) {
  return CudaProfile(trace, settings).run(num_steps);
}

}  // namespace rematch
