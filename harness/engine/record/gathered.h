// Tensors from outside the regions whose content may be missing or replaced between forward and
// backward. Examples are parameters that are gathered only while a layer runs, and parameters of
// several layers that share one buffer.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <unordered_map>
#include <vector>

namespace rematch {

// Stores a callback for each tensor. The engine calls the callback before backward reads the
// tensor. The callback returns whether the tensor has the same content as in forward. The engine
// does not verify this.
class GatheredTensors {
 public:
  using IsBack = std::function<bool(const at::Tensor&)>;

  // Must not be called while a step runs.
  void add(const std::vector<at::Tensor>& tensors, const IsBack& is_back);

  bool contains(const at::Tensor& tensor) const { return find(tensor) != nullptr; }
  // Call this on the thread that runs backward. `tensor` must have a callback.
  bool is_back(const at::Tensor& tensor) const { return (*find(tensor))(tensor); }

 private:
  struct Entry {
    // A weak reference prevents reuse of the tensor's address.
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    IsBack is_back;
  };

  const IsBack* find(const at::Tensor& tensor) const {
    if (entries_.empty()) return nullptr;
    const auto found = entries_.find(tensor.unsafeGetTensorImpl());
    return found == entries_.end() ? nullptr : &found->second.is_back;
  }

  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
};

}  // namespace rematch
