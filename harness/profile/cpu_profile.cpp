#include "harness/profile/cpu_profile.h"

#include <string>
#include <vector>

#include "harness/profile/op_timer.h"
#include "harness/profile/profiled_training.h"
#include "harness/profile/step_ops.h"
#include "policies/trace/measured_profile.h"

namespace rematch {
namespace {

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

}  // namespace

Profile profile_on_cpu(const Trace& trace, const TrainingSettings& settings, int num_steps) {
  ProfiledTraining training(settings, 2 * num_steps);
  training.warm_up();
  TimedSteps steps;
  PhaseClock clock(settings.device, steps);
  OpTimer timer;
  for (int i = 0; i < num_steps; ++i) {
    training.step(clock);
    const OpModeGuard watch(&timer);
    TimerListener watched(timer);
    training.step(watched);
    steps.watched.push_back(
        {times_of(watched.forward, forward_names(trace), "forward", "the CPU"),
         times_of(watched.backward, backward_names(trace), "backward", "the CPU")});
  }
  return measured_profile(trace, "cpu", steps);
}

}  // namespace rematch
