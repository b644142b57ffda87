#include "models/layers/parameters.h"

#include <ATen/ops/empty.h>

namespace rematch {

at::ScalarType dtype_of(const ModelSpec& spec) {
  return spec.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

at::Tensor Parameters::add(const std::string& name, at::IntArrayRef sizes, InitialValues values) {
  const auto options = at::TensorOptions().dtype(dtype_);
  at::Tensor tensor;
  if (device_.is_meta()) {
    tensor = at::empty(sizes, options.device(device_));
  } else {
    tensor = at::empty(sizes, options.device(at::kCPU));
    fill_by_hash(tensor, name, values);
    tensor = tensor.to(device_);
  }
  tensor.set_requires_grad(true);
  list_.push_back({name, tensor});
  return tensor;
}

}  // namespace rematch
