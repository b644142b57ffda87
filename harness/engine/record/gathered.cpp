#include "harness/engine/record/gathered.h"

namespace rematch {

void GatheredTensors::add(const std::vector<at::Tensor>& tensors, const IsBack& is_back) {
  for (const at::Tensor& each : tensors) {
    entries_.insert_or_assign(each.unsafeGetTensorImpl(),
                              Entry{decltype(Entry::tensor)(each.getIntrusivePtr()), is_back});
  }
}

}  // namespace rematch
