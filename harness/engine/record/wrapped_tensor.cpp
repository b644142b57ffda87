#include "harness/engine/record/wrapped_tensor.h"

#include <atomic>

namespace rematch {
namespace {

std::atomic<LookInside> look_inside_wrapper{nullptr};

}  // namespace

void set_look_inside(LookInside look_inside) { look_inside_wrapper.store(look_inside); }

c10::TensorImpl* look_inside(c10::TensorImpl& subclass) {
  const LookInside look = look_inside_wrapper.load(std::memory_order_relaxed);
  if (look == nullptr) return nullptr;
  void* const python_object = subclass.pyobj_slot()->load_pyobj();
  void* const inner = python_object == nullptr ? nullptr : look(python_object);
  return static_cast<c10::TensorImpl*>(inner);
}

at::Tensor tensor_with_data(const at::Tensor& tensor) {
  using Holder = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  return at::Tensor(Holder::reclaim_copy(&impl_with_data(tensor)));
}

}  // namespace rematch
