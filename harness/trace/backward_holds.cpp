#include "harness/trace/backward_holds.h"

#include <algorithm>

#include "harness/engine/record/wrapped_tensor.h"

namespace rematch {

void BackwardHolds::watch_results(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  fresh_results_.visit(op, stack, [this](const at::Tensor& result) {
    const at::Tensor with_data = tensor_with_data(result);
    if (!with_data.has_storage()) return;
    const c10::Storage& storage = with_data.storage();
    if (storage.nbytes() == 0 || find(storage) != nullptr) return;
    made_.push_back(
        {storage.getWeakStorageImpl(), Bytes{static_cast<std::int64_t>(storage.nbytes())}});
  });
}

void BackwardHolds::note_gradient(const c10::Storage& storage) {
  if (Made* const made = find(storage)) made->is_gradient = true;
}

BackwardBytes BackwardHolds::bytes() {
  std::erase_if(made_, [](const Made& made) { return made.storage.expired(); });
  BackwardBytes alive;
  for (const Made& made : made_) {
    alive.all += made.bytes;
    if (made.is_gradient) alive.gradients += made.bytes;
  }
  return alive;
}

BackwardHolds::Made* BackwardHolds::find(const c10::Storage& storage) {
  const c10::StorageImpl* const wanted = storage.unsafeGetStorageImpl();
  // The newest is asked for most often.
  const auto found = std::find_if(made_.rbegin(), made_.rend(), [&](const Made& made) {
    return made.storage._unsafe_get_target() == wanted && !made.storage.expired();
  });
  return found == made_.rend() ? nullptr : &*found;
}

}  // namespace rematch
