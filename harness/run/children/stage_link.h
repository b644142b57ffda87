// Passes activations and gradients between the ranks of a pipeline's stages, over the process group
// "pp". For CPU tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "harness/training/stage.h"
#include "models/preset/preset.h"

namespace rematch {

// Copies a sent tensor to memory outside LibTorch's allocators first. So the bytes of tensors at op
// boundaries do not depend on when the neighbour receives.
class RankStageLink final : public StageLink {
 public:
  // The group "pp" of the spec's layout must be registered.
  explicit RankStageLink(const ModelSpec& spec);
  ~RankStageLink() override;

  void send(const at::Tensor& tensor, Way way, std::int64_t micro_batch) override;
  void receive(at::Tensor& tensor, Way way, std::int64_t micro_batch) override;
  void finish_step() override;

 private:
  struct Sent;
  void wait_for_oldest();

  int position_;
  std::size_t max_sent_;
  std::deque<std::unique_ptr<Sent>> sent_;  // tensors that may not have arrived yet, oldest first
};

}  // namespace rematch
