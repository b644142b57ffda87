// Tensors from outside whose content comes and goes between forward and backward: parameters that
// are gathered for a layer, or copied into one buffer that serves several layers.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <unordered_map>
#include <vector>

namespace rematch {

// A callback says for each tensor, whenever backward is about to read it, whether its content is
// that of forward again. The callback is believed.
class GatheredTensors {
 public:
  using IsBack = std::function<bool(const at::Tensor&)>;

  // Not while a step runs.
  void add(const std::vector<at::Tensor>& tensors, const IsBack& is_back);

  bool contains(const at::Tensor& tensor) const { return find(tensor) != nullptr; }
  // On the thread that runs backward.
  bool is_back(const at::Tensor& tensor) const { return (*find(tensor))(tensor); }

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;  // keeps the address
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
