#include "harness/profile/cpu_profile.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "harness/profile/op_timer.h"
#include "harness/profile/step_ops.h"
#include "harness/sweep/interrupt.h"
#include "policies/trace/measured_profile.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

// What a step without the timer takes.
class PlainListener final : public StepListener {
 public:
  explicit PlainListener(TimedSteps& steps) : steps_(steps) {}
  void before_step() override { start_ = Clock::now(); }
  void after_forward(const at::Tensor&) override { forward_ = Clock::now(); }
  void after_backward() override { backward_ = Clock::now(); }
  void after_optimizer() override {
    const Clock::time_point end = Clock::now();
    steps_.forward.emplace_back(forward_ - start_);
    steps_.backward.emplace_back(backward_ - forward_);
    steps_.optimizer.emplace_back(end - backward_);
  }

 private:
  TimedSteps& steps_;
  Clock::time_point start_;
  Clock::time_point forward_;
  Clock::time_point backward_;
};

// Points the timer at the list of the phase.
class TimerListener final : public StepListener {
 public:
  explicit TimerListener(OpTimer& timer) : timer_(timer) {}
  void before_step() override { timer_.set_list(&forward); }
  void after_forward(const at::Tensor&) override { timer_.set_list(&backward); }
  void after_backward() override { timer_.set_list(nullptr); }

  std::vector<TimedOp> forward;
  std::vector<TimedOp> backward;

 private:
  OpTimer& timer_;
};

std::vector<Profile::Duration> times_of(const std::vector<TimedOp>& timed,
                                        const std::vector<const std::string*>& traced,
                                        const std::string& phase) {
  std::vector<const std::string*> ran;
  std::vector<Profile::Duration> times;
  for (const TimedOp& op : timed) {
    ran.push_back(op.name);
    times.push_back(op.time);
  }
  require_same_ops(ran, traced, phase, "the CPU");
  return times;
}

class NoListener final : public StepListener {};

void stop_if_interrupted() {
  if (const auto signal = InterruptGuard::signal()) {
    throw Interrupted(*signal, "the ops were not all timed, so there are no times to go by");
  }
}

}  // namespace

Profile profile_on_cpu(const Trace& trace, const TrainingSettings& settings, int num_steps) {
  Training training(settings);
  std::int64_t step = 0;
  NoListener warm_up;
  while (step < kProfileWarmUpSteps) {
    stop_if_interrupted();
    training.step(step++, warm_up);
  }
  TimedSteps steps;
  OpTimer timer;
  for (int i = 0; i < num_steps; ++i) {
    stop_if_interrupted();
    PlainListener plain(steps);
    training.step(step++, plain);
    const OpModeGuard watch(&timer);
    TimerListener watched(timer);
    training.step(step++, watched);
    steps.watched.push_back({times_of(watched.forward, forward_names(trace), "forward"),
                             times_of(watched.backward, backward_names(trace), "backward")});
  }
  return measured_profile(trace, "cpu", steps);
}

}  // namespace rematch
