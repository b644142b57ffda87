#include "models/layers/parameters.h"

#include <ATen/ops/empty.h>

namespace rematch {

at::ScalarType dtype_of(const ModelSpec& spec) {
  return spec.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

at::Tensor Parameters::add(const std::string& name, at::IntArrayRef sizes, InitialValues values) {
  if (!frozen_) return add_learning(name, sizes, values);
  frozen_list_.push_back({name, make(name, sizes, values)});
  return frozen_list_.back().tensor;
}

at::Tensor Parameters::add_learning(const std::string& name, at::IntArrayRef sizes,
                                    InitialValues values) {
  at::Tensor tensor = make(name, sizes, values);
  tensor.set_requires_grad(true);
  list_.push_back({name, tensor});
  return tensor;
}

at::Tensor Parameters::make(const std::string& name, at::IntArrayRef sizes,
                            InitialValues values) const {
  const auto options = at::TensorOptions().dtype(dtype_);
  if (device_.is_meta()) return at::empty(sizes, options.device(device_));
  const at::Tensor tensor = at::empty(sizes, options.device(at::kCPU));
  fill_by_hash(tensor, name, values);
  return tensor.to(device_);
}

}  // namespace rematch
