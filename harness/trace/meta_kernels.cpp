#include "harness/trace/meta_kernels.h"

#include <ATen/TensorIterator.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/result_type.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

namespace rematch {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor empty_contiguous_like(const at::Tensor& tensor) {
  return at::empty_like(tensor, at::MemoryFormat::Contiguous);
}

at::Tensor index_select(const at::Tensor& self, std::int64_t dim, const at::Tensor& index) {
  std::vector<std::int64_t> sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(dim, self.dim())] = index.numel();
  return at::empty(sizes, self.options());
}

at::Tensor embedding_dense_backward(const at::Tensor& grad, const at::Tensor& /*indices*/,
                                    c10::SymInt num_weights, c10::SymInt /*padding_idx*/,
                                    bool /*scale_grad_by_freq*/) {
  return at::empty({num_weights.expect_int(), grad.size(-1)}, grad.options());
}

// Returns output, mean and reciprocal standard deviation. The statistics are float32 if one of the
// parameters is float32.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm(
    const at::Tensor& input, c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight,
    const OptionalTensor& bias, double /*eps*/) {
  std::vector<std::int64_t> sizes = input.sizes().vec();
  for (std::size_t dim = sizes.size() - normalized_shape.size(); dim < sizes.size(); ++dim) {
    sizes[dim] = 1;
  }
  at::ScalarType statistics = input.scalar_type();
  for (const OptionalTensor& parameter : {weight, bias}) {
    if (parameter && parameter->defined() && parameter->scalar_type() == at::kFloat) {
      statistics = at::kFloat;
    }
  }
  const auto options = input.options().dtype(statistics);
  return {empty_contiguous_like(input), at::empty(sizes, options), at::empty(sizes, options)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_layer_norm_backward(
    const at::Tensor& /*grad_out*/, const at::Tensor& input,
    c10::SymIntArrayRef /*normalized_shape*/, const at::Tensor& /*mean*/,
    const at::Tensor& /*rstd*/, const OptionalTensor& weight, const OptionalTensor& bias,
    std::array<bool, 3> output_mask) {
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = empty_contiguous_like(input);
  if (output_mask[1]) grad_weight = empty_contiguous_like(weight.value());
  if (output_mask[2]) grad_bias = empty_contiguous_like(bias.value());
  return {grad_input, grad_weight, grad_bias};
}

at::Tensor mse_loss_backward(const at::Tensor& /*grad_output*/, const at::Tensor& self,
                             const at::Tensor& /*target*/, std::int64_t /*reduction*/) {
  return empty_contiguous_like(self);
}

// Converts a CPU scalar to a meta tensor, because an op on meta tensors may also take CPU scalars.
at::Tensor scalar_on_meta(const at::Tensor& tensor) {
  if (tensor.is_meta() || tensor.dim() != 0) return tensor;
  return at::empty({}, tensor.options().device(at::kMeta));
}

// Computes the broadcast shape and strides with TensorIterator.
at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const at::ScalarType dtype = at::result_type(self, other);
  auto iterator = at::TensorIteratorConfig()
                      .check_all_same_dtype(false)
                      .declare_static_dtype_and_device(dtype, at::kMeta)
                      .add_owned_output(at::Tensor())
                      .add_owned_const_input(scalar_on_meta(condition))
                      .add_owned_const_input(scalar_on_meta(self))
                      .add_owned_const_input(scalar_on_meta(other))
                      .build();
  return iterator.output();
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double /*p*/,
                                                  std::optional<bool> /*train*/) {
  const at::Tensor output = at::empty_like(input);
  const at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  return {output, mask};
}

at::Tensor native_dropout_backward(const at::Tensor& grad_output, const at::Tensor& /*mask*/,
                                   double /*scale*/) {
  return at::empty_like(grad_output);
}

// Rows of the product start at multiples of 16 bytes, as the kernels require.
at::Tensor grouped_mm(const at::Tensor& self, const at::Tensor& mat2, const OptionalTensor& offs,
                      const OptionalTensor& /*bias*/, std::optional<at::ScalarType> out_dtype) {
  constexpr std::int64_t kRowAlignmentBytes = 16;
  const auto options = self.options().dtype(out_dtype.value_or(self.scalar_type()));
  const std::int64_t rows = self.size(-2);
  const std::int64_t columns = mat2.size(-1);
  const auto multiple = kRowAlignmentBytes / static_cast<std::int64_t>(self.element_size());
  const std::int64_t stride = (columns + multiple - 1) / multiple * multiple;
  if (self.dim() != mat2.dim()) {
    return at::empty_strided({rows, columns}, {stride, 1}, options);
  }
  const std::int64_t groups = self.dim() == 3 ? self.size(0) : offs.value().size(0);
  return at::empty_strided({groups, rows, columns}, {rows * stride, stride, 1}, options);
}

void fused_adamw(at::TensorList /*self*/, at::TensorList /*grads*/, at::TensorList /*exp_avgs*/,
                 at::TensorList /*exp_avg_sqs*/, at::TensorList /*max_exp_avg_sqs*/,
                 at::TensorList /*state_steps*/, double /*lr*/, double /*beta1*/, double /*beta2*/,
                 double /*weight_decay*/, double /*eps*/, bool /*amsgrad*/, bool /*maximize*/,
                 const OptionalTensor& /*grad_scale*/, const OptionalTensor& /*found_inf*/) {}

}  // namespace

void install_meta_kernels() {
  // The library is never destroyed, because unregistering at exit would race with other static
  // destruction. `used` keeps the library reachable, so that leak checkers do not report it.
  [[gnu::used]] static const auto* library = [] {
    auto* meta = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__,
                                    __LINE__);
    meta->impl("index_select", TORCH_FN(index_select));
    meta->impl("embedding_dense_backward", TORCH_FN(embedding_dense_backward));
    meta->impl("native_layer_norm", TORCH_FN(native_layer_norm));
    meta->impl("native_layer_norm_backward", TORCH_FN(native_layer_norm_backward));
    meta->impl("mse_loss_backward", TORCH_FN(mse_loss_backward));
    meta->impl("where.self", TORCH_FN(where));
    meta->impl("native_dropout", TORCH_FN(native_dropout));
    meta->impl("native_dropout_backward", TORCH_FN(native_dropout_backward));
    meta->impl("_grouped_mm", TORCH_FN(grouped_mm));
    meta->impl("_fused_adamw_", TORCH_FN(fused_adamw));
    return meta;
  }();
}

}  // namespace rematch
