#include "kernels/op/launch.h"

#include <ATen/Version.h>

#include <string>

namespace rematch::kernels {

Capability capability() {
  static const Capability used = [] {
    const std::string name = at::get_cpu_capability();
    if (name == "AVX512") return Capability::kAvx512;
    return name == "AVX2" ? Capability::kAvx2 : Capability::kPortable;
  }();
  return used;
}

Element element_of(const at::Tensor& tensor, const char* op) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return Element::kFloat32;
    case at::kBFloat16:
      return Element::kBFloat16;
    case at::kDouble:
      return Element::kFloat64;
    default:
      TORCH_CHECK(false, "rematch::", op, ": takes float32, bfloat16 or float64, found ",
                  tensor.scalar_type());
  }
}

at::Tensor with_dense_rows(const at::Tensor& tensor) {
  if (tensor.is_meta() || tensor.size(-1) == 1 || tensor.stride(-1) == 1) return tensor;
  return tensor.contiguous();
}

at::ScalarType sum_dtype(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace rematch::kernels
