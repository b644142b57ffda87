#include "harness/trace/backward_holds.h"

#include "harness/engine/record/wrapped_tensor.h"

namespace rematch {

void BackwardHolds::watch_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  fresh_results_.visit(op, stack, [this](const at::Tensor& result) {
    const at::Tensor with_data = tensor_with_data(result);
    if (!with_data.has_storage()) return;
    const c10::Storage& storage = with_data.storage();
    const Bytes bytes{static_cast<std::int64_t>(storage.nbytes())};
    if (bytes.count > 0) followed_.follow(storage, MemoryTag::kBackward, bytes);
  });
}

void BackwardHolds::note_gradient(const c10::Storage& storage) {
  FollowedStorage* const made = followed_.find(storage);
  if (made != nullptr) made->tag = MemoryTag::kGradient;
}

BackwardBytes BackwardHolds::bytes() {
  BackwardBytes alive;
  for (const FollowedStorage& made : followed_.alive()) {
    alive.all += made.bytes;
    if (made.tag == MemoryTag::kGradient) alive.gradients += made.bytes;
  }
  return alive;
}

}  // namespace rematch
