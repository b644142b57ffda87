// The two ends of a pipeline stage's autograd graph, and the link to the neighbouring stages.
// Activations go to the next stage, and gradients to the stage before. Observers do not see the ops
// of this file, because they are not part of the step.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace rematch {

// Sends tensors to the neighbours of this rank's stage, and receives tensors from them. This base
// class has no neighbours: it sends nothing and receives zeros. So a process can run a stage alone.
// RankStageLink in harness/run/children/stage_link.h connects real ranks.
class StageLink {
 public:
  enum class Way : std::uint8_t { kForward, kBackward };

  StageLink() = default;
  virtual ~StageLink() = default;
  StageLink(const StageLink&) = delete;
  StageLink& operator=(const StageLink&) = delete;

  // Sends to the next stage (kForward) or to the stage before (kBackward). The caller may free the
  // tensor at once.
  virtual void send(const at::Tensor& /*tensor*/, Way /*way*/, std::int64_t /*micro_batch*/) {}
  // Fills the tensor with the neighbour's tensor: from the stage before (kForward), or from the
  // next stage (kBackward).
  virtual void receive(at::Tensor& tensor, Way way, std::int64_t micro_batch);
  // Waits until all sent tensors have arrived.
  virtual void finish_step() {}
};

// Allocates an activation from the stage before. Backward passes its gradient to `take`, and then
// frees it. `take` must outlive the graph.
at::Tensor make_stage_input(const std::vector<std::int64_t>& sizes,
                            const at::TensorOptions& options,
                            std::function<void(const at::Tensor& gradient)> take);

// The output of a stage whose tensor has been sent. Keeps the graph, but not the tensor.
class StageOutput {
 public:
  explicit StageOutput(const at::Tensor& output);

  // Allocates a tensor for the output's gradient.
  at::Tensor make_gradient() const;
  // Runs backward from the output. Call it once.
  void backward(const at::Tensor& gradient);

 private:
  torch::autograd::Edge edge_;
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
};

}  // namespace rematch
