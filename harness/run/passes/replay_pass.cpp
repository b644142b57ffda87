#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>

#include <string>
#include <vector>

#include "harness/measure/hash.h"
#include "harness/run/passes/passes.h"
#include "harness/training/device.h"
#include "harness/training/replayed_step.h"

namespace rematch {
namespace {

std::vector<at::Tensor> tensors_of(Training& training) {
  std::vector<at::Tensor> tensors = training.parameter_tensors();
  for (const at::Tensor& tensor : training.optimizer().state()) tensors.push_back(tensor);
  return tensors;
}

// A copy of everything that a step changes. The copy is on the host, because the device may have no
// room for it.
class StateOfTraining {
 public:
  StateOfTraining(Training& training, at::Device device)
      : training_(training), generator_(at::globalContext().defaultGenerator(device)) {
    for (const at::Tensor& tensor : tensors_of(training)) {
      tensors_.push_back(tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
    }
    generator_state_ = generator_.get_state();
  }

  void restore() {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> changed = tensors_of(training_);
    for (std::size_t i = 0; i < changed.size(); ++i) changed[i].copy_(tensors_[i]);
    generator_.set_state(generator_state_);
  }

 private:
  Training& training_;
  at::Generator generator_;
  std::vector<at::Tensor> tensors_;
  at::Tensor generator_state_;
};

// Returns a hash of the loss, and of all that the step has changed.
std::string hash_after_step(Training& training, at::Device device, const at::Tensor& loss) {
  std::vector<at::Tensor> tensors = tensors_of(training);
  tensors.push_back(loss.detach());
  return tensors_hash(tensors) + generator_hash(device);
}

}  // namespace

void replay_pass(Training& training, at::Device device, std::int64_t first_step,
                 PassPosition& position, PointRecord& record) {
  position = {"replay", -1, {}};
  const std::int64_t step = first_step + kWarmUpSteps;
  Watching listener(position);
  ReplayedStep replayed(training, device);
  std::string by_ops;
  std::string by_replay;
  // Everything that reads or writes the state is on the stream of the graph.
  replayed.run([&] {
    warm_up(training, first_step, kWarmUpSteps, position);
    position = {"replay", -1, {}};
    StateOfTraining before(training, device);
    const at::Tensor loss = training.step(step, listener);
    by_ops = hash_after_step(training, device, loss);
    before.restore();
  });
  replayed.capture(step);
  const at::Tensor loss = replayed.step(step, listener);
  replayed.run([&] { by_replay = hash_after_step(training, device, loss); });
  if (record.parity) record.parity->replay_bits_equal = by_ops == by_replay;
}

}  // namespace rematch
