#include "harness/profile/device_profile.h"

#include <cstdint>
#include <memory>

#include "harness/measure/clocks.h"
#include "harness/measure/cuda_device.h"
#include "harness/process/interrupt.h"
#include "harness/profile/activity.h"
#include "harness/profile/clocked_step.h"
#include "harness/profile/op_call_recorder.h"
#include "harness/profile/op_timer.h"
#include "harness/profile/recorded_step.h"
#include "harness/profile/step_ops.h"
#include "harness/progress/progress.h"
#include "kernels/attention/backend.h"
#include "policies/trace/measured_profile.h"

namespace rematch {
namespace {

// Two steps, to check that the allocator behaves the same in every step.
constexpr int kWeighedSteps = 2;

// Appends the duration of each step's phases, per micro-batch. No other observer may be active in
// these steps.
class PhaseClock final : public ClockedStep {
 public:
  // `steps` must outlive this object.
  PhaseClock(at::Device device, std::int64_t num_micro_batches, TimedSteps& steps)
      : ClockedStep(device), num_micro_batches_(num_micro_batches), steps_(steps) {}
  void after_optimizer() override {
    ClockedStep::after_optimizer();
    const auto times = clock().by_phase();
    const auto of = [&](Phase phase) { return times[static_cast<std::size_t>(phase)]; };
    steps_.forward.emplace_back(of(Phase::kForward) / num_micro_batches_);
    steps_.backward.emplace_back(of(Phase::kBackward) / num_micro_batches_);
    steps_.optimizer.emplace_back(of(Phase::kOptimizer));
  }

 private:
  std::int64_t num_micro_batches_;
  TimedSteps& steps_;
};

// Makes a recorder write to the list of forward or of backward, whichever pass runs. The lists keep
// the figures of the last micro-batch.
template <class Recorder, class Figure>
class ListedStep final : public StepListener {
 public:
  ListedStep(Recorder& recorder, StepFigures<Figure>& figures)
      : recorder_(recorder), figures_(figures) {}
  void before_step() override { recorder_.set_list(&figures_.forward); }
  void before_next_micro_batch() override {
    figures_ = {};
    recorder_.set_list(&figures_.forward);
  }
  void after_forward(const at::Tensor&) override { recorder_.set_list(&figures_.backward); }
  void after_backward() override { recorder_.set_list(nullptr); }

 private:
  Recorder& recorder_;
  StepFigures<Figure>& figures_;
};

// Runs the steps that measure a profile. Each step takes only one kind of measurement, because two
// kinds in one step would disturb each other.
class ProfiledTraining {
 public:
  ProfiledTraining(const Trace& trace, const TrainingSettings& settings, int num_steps)
      : trace_(trace),
        device_(settings.device),
        determinism_(settings.determinism),
        num_steps_(num_steps),
        num_micro_batches_(micro_batches(settings.model)),
        training_(settings),
        progress_("profile",
                  kWarmUpSteps + 2 * num_steps + (device_.is_cuda() ? kWeighedSteps + 1 : 0)) {}

  Profile run() {
    StepListener nobody;
    for (int i = 0; i < kWarmUpSteps; ++i) step(nobody);
    if (device_.is_cuda()) {
      for (int i = 0; i < num_steps_; ++i) step(clock_);
      weigh_ops();
      record_kernels();
    } else {
      time_by_turns();
    }
    Profile profile = measured_profile(trace_, device_.is_cuda() ? "cuda" : "cpu", steps_);
    note_kernels(profile);
    repeat_micro_batch(profile, num_micro_batches_);
    return profile;
  }

 private:
  void step(StepListener& listener);
  void time_by_turns();
  void weigh_ops();
  void record_kernels();
  void note_kernels(Profile& profile) const;

  const Trace& trace_;
  at::Device device_;
  Determinism determinism_;
  int num_steps_;
  std::int64_t num_micro_batches_;
  Training training_;
  StepProgress progress_;
  std::int64_t next_step_ = 0;
  TimedSteps steps_;
  PhaseClock clock_{device_, num_micro_batches_, steps_};
};

void ProfiledTraining::step(StepListener& listener) {
  if (const auto signal = InterruptGuard::signal()) {
    throw Interrupted(*signal, "not all ops were timed, so there is no profile");
  }
  training_.step(next_step_++, listener);
  progress_.step_done();
}

// Alternates steps that are timed as a whole with steps whose ops are timed. Comparing them gives
// the time between ops.
void ProfiledTraining::time_by_turns() {
  OpTimer timer;
  for (int i = 0; i < num_steps_; ++i) {
    step(clock_);
    const OpModeGuard watch(&timer);
    StepFigures<Profile::Duration> timed;
    ListedStep listed(timer, timed);
    step(listed);
    steps_.watched.push_back(of_trace<TimedSteps::Ops>(timed, trace_, "the CPU"));
  }
}

void ProfiledTraining::weigh_ops() {
  TemporaryRecorder recorder(device_);
  const OpObserverGuard observe(&recorder);
  for (int i = 0; i < kWeighedSteps; ++i) {
    StepFigures<Bytes> weighed;
    ListedStep listed(recorder, weighed);
    step(listed);
    steps_.weighed.push_back(of_trace<TimedSteps::Temporaries>(weighed, trace_, "the GPU"));
  }
}

// The recorder runs last, because its buffers take device memory.
void ProfiledTraining::record_kernels() {
  const std::unique_ptr<ActivityRecorder> activity = record_activity();
  StepListener nobody;
  // Warms up: the first recorded step loads kernels and libraries, so it is not counted.
  step(nobody);
  synchronize(device_);
  activity->discard();
  OpCallRecorder recorder({activity.get()});
  RecordedStep listener(recorder);
  {
    const OpObserverGuard observe(&recorder);
    for (int i = 0; i < num_steps_; ++i) step(listener);
    synchronize(device_);
  }
  steps_.watched = times_of_steps(activity->finish(), recorder.calls(), trace_, num_steps_);
}

// Records the settings on which the times depend, such as the attention kernel, which LibTorch may
// have chosen by itself.
void ProfiledTraining::note_kernels(Profile& profile) const {
  profile.attention_backend = to_string(attention_backend_in_use());
  if (!device_.is_cuda()) return;
  if (const auto card = cuda_device(device_.index())) profile.card = card->name;
  profile.repeatable_bits = determinism_ == Determinism::kRepeatableBits;
}

}  // namespace

Profile profile_on_device(const Trace& trace, const TrainingSettings& settings, int num_steps) {
  return ProfiledTraining(trace, settings, num_steps).run();
}

}  // namespace rematch
