// Training steps as replays of one captured step. The host does the work of a step once, so small
// models, whose steps wait for the host, run faster.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "harness/training/training.h"

namespace rematch {

// Thrown if a step cannot be captured. The message names the op that failed.
struct NotCapturable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CudaGraph;

class ReplayedStep {
 public:
  // `training` must be on a CUDA device, and must outlive this object.
  ReplayedStep(Training& training, at::Device device);
  ~ReplayedStep();

  // Runs `work`, such as warm-up steps, on the stream of the captured step. A step that warms up
  // there allocates what a capture must not allocate: workspaces of libraries, pinned host memory
  // and the optimizer's state.
  void run(const std::function<void()>& work);

  // Captures a step, with the batch of step `index`, under the training's plan. Call this after
  // warm-up and before step(). Throws NotCapturable.
  void capture(std::int64_t index);

  // Makes the batch of step `index` and replays the captured step. Calls only
  // before_step() and after_optimizer() of the listener. Returns the loss, which the next replay
  // overwrites.
  at::Tensor step(std::int64_t index, StepListener& listener);

 private:
  Training& training_;
  std::unique_ptr<CudaGraph> graph_;
  std::vector<Batch> batches_;  // one for each micro-batch; the graph reads them
  at::Tensor loss_;
};

}  // namespace rematch
