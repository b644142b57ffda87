#include "kernels/rms_norm/rms_norm.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "kernels/op/autograd.h"
#include "kernels/op/launch.h"
#include "kernels/rms_norm/rms_norm_kernels.h"

namespace rematch::kernels {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor>;  // of x and weight

void check_inputs(const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(x.dim() > 0, "rematch::rms_norm: x must have a dimension to normalise");
  if (!weight.defined()) return;
  TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(-1),
              "rematch::rms_norm: the weight must be [", x.size(-1), "], as x's last dimension; ",
              "found ", weight.sizes());
  TORCH_CHECK(weight.scalar_type() == x.scalar_type(),
              "rematch::rms_norm: x and weight must have one dtype, found ", x.scalar_type(), ", ",
              weight.scalar_type());
}

const void* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

RmsNorm arguments_of(const at::Tensor& rows, const at::Tensor& weight, double eps) {
  return {.element = element_of(rows, "rms_norm"),
          .rows = rows.size(0),
          .width = rows.size(1),
          .x_stride = rows.stride(0),
          .eps = eps,
          .x = rows.const_data_ptr(),
          .weight = data_or_null(weight),
          .y = nullptr};
}

at::Tensor rows_of(const at::Tensor& x) { return with_dense_rows(x.reshape({-1, x.size(-1)})); }

at::Tensor rms_norm(const at::Tensor& x, const OptionalTensor& weight, double eps) {
  at::Tensor used_weight = weight.value_or(at::Tensor());
  check_inputs(x, used_weight);
  const at::Tensor y = at::empty(x.sizes(), x.options());
  if (x.is_meta() || x.numel() == 0) return y;
  if (used_weight.defined()) used_weight = used_weight.contiguous();
  const at::Tensor rows = rows_of(x);
  RmsNorm arguments = arguments_of(rows, used_weight, eps);
  arguments.y = y.mutable_data_ptr();
  launch<RmsNorm>(x.device(), REMATCH_KERNELS(rms_norm), arguments);
  return y;
}

Gradients rms_norm_backward(const at::Tensor& grad_y, const at::Tensor& x,
                            const OptionalTensor& weight, double eps, bool needs_weight) {
  at::Tensor used_weight = weight.value_or(at::Tensor());
  const at::Tensor grad_x = at::empty(x.sizes(), x.options());
  at::Tensor grad_weight;
  if (needs_weight) grad_weight = at::empty(used_weight.sizes(), used_weight.options());
  if (x.is_meta()) return {grad_x, grad_weight};
  if (x.numel() == 0) return {grad_x, needs_weight ? grad_weight.zero_() : grad_weight};
  if (used_weight.defined()) used_weight = used_weight.contiguous();
  const at::Tensor rows = rows_of(x);
  const at::Tensor grad_rows = rows_of(grad_y);
  RmsNormBackward arguments = {.forward = arguments_of(rows, used_weight, eps),
                               .grad_stride = grad_rows.stride(0),
                               .grad_y = grad_rows.const_data_ptr(),
                               .grad_x = grad_x.mutable_data_ptr(),
                               .grad_weight = nullptr,
                               .partial = nullptr};
  at::Tensor partial;
  if (needs_weight) {
    partial = at::empty({num_row_blocks(rows.size(0)), rows.size(1)},
                        x.options().dtype(sum_dtype(x.scalar_type())));
    arguments.grad_weight = grad_weight.mutable_data_ptr();
    arguments.partial = partial.mutable_data_ptr();
  }
  launch<RmsNormBackward>(x.device(), REMATCH_KERNELS(rms_norm_backward), arguments);
  return {grad_x, grad_weight};
}

at::Tensor rms_norm_autograd(c10::DispatchKeySet keys, const at::Tensor& x,
                             const OptionalTensor& weight, double eps) {
  static const auto op = handle<decltype(rms_norm)>("rematch::rms_norm");
  static const auto backward = handle<decltype(rms_norm_backward)>("rematch::rms_norm_backward");
  const auto formula = [eps](const Saved& saved) -> std::vector<at::Tensor> {
    const auto [grad_x, grad_weight] =
        backward.call(saved.grad, saved.kept[0], saved.kept[1], eps, saved.needed[1]);
    return {grad_x, grad_weight};
  };
  const std::vector<at::Tensor> inputs = {x, weight.value_or(at::Tensor())};
  return differentiate({"RematchRmsNormBackward", inputs, inputs, formula},
                       [&]() -> std::vector<at::Tensor> {
                         return {op.redispatch(keys & c10::after_autograd_keyset, x, weight, eps)};
                       })[0];
}

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("rms_norm(Tensor x, Tensor? weight, float eps) -> Tensor");
  m.def(
      "rms_norm_backward(Tensor grad_y, Tensor x, Tensor? weight, float eps, bool needs_weight) "
      "-> (Tensor, Tensor)");
  for (const auto key : kDeviceKeys) {
    m.impl("rms_norm", torch::dispatch(key, TORCH_FN(rms_norm)));
    m.impl("rms_norm_backward", torch::dispatch(key, TORCH_FN(rms_norm_backward)));
  }
  m.impl("rms_norm", torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(rms_norm_autograd)));
  m.impl("rms_norm_backward", torch::dispatch(c10::DispatchKey::Autograd,
                                              torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  using Signature = at::Tensor(const at::Tensor&, const std::optional<at::Tensor>&, double);
  static const auto op = kernels::handle<Signature>("rematch::rms_norm");
  return op.call(x, weight.defined() ? std::optional(weight) : std::nullopt, eps);
}

}  // namespace rematch::fused
