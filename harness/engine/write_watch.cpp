#include "harness/engine/write_watch.h"

#include "harness/engine/frame.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/outside.h"

namespace rematch {

void WriteWatch::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack, std::size_t depth) {
  const OpFacts& facts = facts_of(op);
  if (facts.mutates && !in_backward()) {
    const std::size_t base = stack->size() - facts.arguments.size();
    for (const std::uint16_t position : facts.written) {
      for (const at::Tensor& written : tensors_in((*stack)[base + position])) {
        tell_regions(written);
      }
    }
  }
  call_next(op, keys, stack, depth);
}

void WriteWatch::tell_regions(const at::Tensor& written) {
  if (!written.defined()) return;
  const c10::StorageImpl* const storage = storage_address(written);
  if (storage == nullptr) return;
  std::erase_if(frames_, [](const std::weak_ptr<Frame>& frame) { return frame.expired(); });
  for (const std::weak_ptr<Frame>& each : frames_) {
    if (const std::shared_ptr<Frame> frame = each.lock()) frame->keep_content_of(storage);
  }
}

}  // namespace rematch
