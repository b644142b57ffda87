#include "kernels/fused/rms_norm.h"

#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct RmsNormOp {
  static constexpr auto kForward = "rms_norm(Tensor x, Tensor? weight, float eps) -> Tensor";
  static constexpr auto kBackward =
      "rms_norm_backward(Tensor grad_y, Tensor x, Tensor? weight, float eps, bool needs_weight) "
      "-> (Tensor, Tensor)";
  using OptionalTensor = std::optional<at::Tensor>;
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and weight

  static at::Tensor forward(const at::Tensor& x, const OptionalTensor& weight, double eps) {
    at::Tensor used_weight = weight.value_or(at::Tensor());
    check_inputs(x, used_weight);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return y;
    if (used_weight.defined()) used_weight = used_weight.contiguous();
    const at::Tensor rows = rows_of(x);
    RmsNorm arguments = arguments_of(rows, used_weight, eps);
    arguments.y = y.mutable_data_ptr();
    launch(x.device(), arguments);
    return y;
  }

  static Gradients backward(const at::Tensor& grad_y, const at::Tensor& x,
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
    launch(x.device(), arguments);
    return {grad_x, grad_weight};
  }

  static Derivative derivative(const at::Tensor& x, const OptionalTensor& weight, double eps) {
    const std::vector<at::Tensor> inputs = {x, weight.value_or(at::Tensor())};
    return {.inputs = inputs, .kept = inputs, .formula = [eps](const Saved& saved) {
              return gradients<RmsNormOp>(saved.grad, saved.kept[0], saved.kept[1], eps,
                                          bool{saved.needed[1]});
            }};
  }

 private:
  static void check_inputs(const at::Tensor& x, const at::Tensor& weight) {
    TORCH_CHECK(x.dim() > 0, "rematch::rms_norm: x must have a dimension to normalise");
    if (!weight.defined()) return;
    TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(-1),
                "rematch::rms_norm: the weight must be [", x.size(-1), "], as x's last dimension; ",
                "found ", weight.sizes());
    TORCH_CHECK(weight.scalar_type() == x.scalar_type(),
                "rematch::rms_norm: x and weight must have the same dtype, found ", x.scalar_type(),
                ", ", weight.scalar_type());
  }

  static RmsNorm arguments_of(const at::Tensor& rows, const at::Tensor& weight, double eps) {
    return {.element = element_of(rows, "rms_norm"),
            .rows = rows.size(0),
            .width = rows.size(1),
            .x_stride = rows.stride(0),
            .eps = eps,
            .x = rows.const_data_ptr(),
            .weight = weight.defined() ? weight.const_data_ptr() : nullptr,
            .y = nullptr};
  }

  static at::Tensor rows_of(const at::Tensor& x) {
    return with_dense_rows(x.reshape({-1, x.size(-1)}));
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<RmsNormOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const auto given = weight.defined() ? std::optional(weight) : std::nullopt;
  return kernels::call<kernels::RmsNormOp>(x, given, eps);
}

}  // namespace rematch::fused
