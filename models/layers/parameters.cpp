#include "models/layers/parameters.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>

#include <cmath>

#include "models/layers/hash.h"

namespace rematch {
namespace {

template <typename Element>
void fill(const at::Tensor& tensor, std::uint64_t seed, InitialValues values) {
  auto* elements = tensor.data_ptr<Element>();
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  for (std::uint64_t index = 0; index < count; ++index) {
    const float unit = hash_to_signed_unit(splitmix64(seed + index));
    elements[index] = Element(values.centre + values.amplitude * unit);
  }
}

}  // namespace

InitialValues uniform_by_fan_in(std::int64_t fan_in) {
  return {0.0F, static_cast<float>(std::sqrt(1.0 / static_cast<double>(fan_in)))};
}

InitialValues near_one() { return {1.0F, 0.125F}; }

InitialValues unit() { return {0.0F, 1.0F}; }

void fill_by_hash(const at::Tensor& tensor, std::string_view name, InitialValues values) {
  TORCH_CHECK(tensor.is_cpu() && tensor.is_contiguous(),
              "fill_by_hash: need a contiguous CPU tensor for ", name);
  const std::uint64_t seed = fnv1a64(name);
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return fill<float>(tensor, seed, values);
    case at::kBFloat16:
      return fill<c10::BFloat16>(tensor, seed, values);
    default:
      TORCH_CHECK(false, "fill_by_hash: unsupported dtype ", tensor.scalar_type(), " for ", name);
  }
}

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
