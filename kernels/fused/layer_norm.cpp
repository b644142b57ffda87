#include "kernels/fused/layer_norm.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct LayerNormOp {
  static constexpr auto kForward =
      "layer_norm(Tensor x, Tensor scale, Tensor shift, float offset, float eps) -> Tensor";
  static constexpr auto kBackward =
      "layer_norm_backward(Tensor grad_y, Tensor x, Tensor scale, float offset, float eps) -> "
      "(Tensor, Tensor, Tensor)";
  // The gradients of x, scale and shift.
  using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                            double offset, double eps) {
    check_inputs(x, scale, shift);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return y;
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_scale = with_dense_rows(scale);
    const at::Tensor dense_shift = with_dense_rows(shift);
    LayerNorm arguments = arguments_of(dense_x, dense_scale, offset, eps);
    arguments.shift_stride = stride_of(dense_shift);
    arguments.shift = dense_shift.const_data_ptr();
    arguments.y = y.mutable_data_ptr();
    launch(x.device(), arguments);
    return y;
  }

  static Gradients backward(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& scale,
                            double offset, double eps) {
    const at::Tensor grad_x = at::empty(x.sizes(), x.options());
    const at::Tensor grad_scale = at::empty(scale.sizes(), scale.options());
    const at::Tensor grad_shift = at::empty(scale.sizes(), scale.options());
    if (x.is_meta()) return {grad_x, grad_scale, grad_shift};
    if (x.numel() == 0) return {grad_x, grad_scale.zero_(), grad_shift.zero_()};
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_scale = with_dense_rows(scale);
    const at::Tensor dense_grad = grad_y.contiguous();
    const LayerNorm arguments = arguments_of(dense_x, dense_scale, offset, eps);
    const at::Tensor partial =
        at::empty({2, arguments.batch, num_row_blocks(arguments.rows), arguments.width},
                  x.options().dtype(sum_dtype(x.scalar_type())));
    launch(x.device(), LayerNormBackward{.forward = arguments,
                                         .grad_y = dense_grad.const_data_ptr(),
                                         .grad_x = grad_x.mutable_data_ptr(),
                                         .grad_scale = grad_scale.mutable_data_ptr(),
                                         .grad_shift = grad_shift.mutable_data_ptr(),
                                         .partial = partial.mutable_data_ptr()});
    return {grad_x, grad_scale, grad_shift};
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& scale,
                               const at::Tensor& shift, double offset, double eps) {
    return {.inputs = {x, scale, shift},
            .kept = {x, scale},
            .formula = [offset, eps](const Saved& saved) {
              return gradients<LayerNormOp>(saved.grad, saved.kept[0], saved.kept[1], offset, eps);
            }};
  }

 private:
  static void check_inputs(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) {
    const auto is_table = [&x](const at::Tensor& table) {
      if (table.dim() == 1) return table.size(0) == x.size(-1);
      return x.dim() == 3 && table.dim() == 3 && table.size(0) == x.size(0) && table.size(1) == 1 &&
             table.size(2) == x.size(2);
    };
    TORCH_CHECK(x.dim() > 0 && is_table(scale) && is_table(shift) && scale.dim() == shift.dim(),
                "rematch::layer_norm: scale and shift must be [width], or [batch, 1, width] for x "
                "[batch, tokens, width]; found ",
                scale.sizes(), " and ", shift.sizes(), " for ", x.sizes());
    TORCH_CHECK(scale.scalar_type() == shift.scalar_type() &&
                    (scale.scalar_type() == x.scalar_type() ||
                     (x.scalar_type() == at::kBFloat16 && scale.scalar_type() == at::kFloat)),
                "rematch::layer_norm: scale and shift must have x's dtype, or be float32 for "
                "bfloat16; found ",
                scale.scalar_type(), " and ", shift.scalar_type(), " for ", x.scalar_type());
    element_of(x, "layer_norm");
  }

  // A table of one row applies to all of x, as if x were a single batch.
  static std::int64_t stride_of(const at::Tensor& table) {
    return table.dim() == 1 ? 0 : table.stride(0);
  }

  static LayerNorm arguments_of(const at::Tensor& x, const at::Tensor& scale, double offset,
                                double eps) {
    const std::int64_t width = x.size(-1);
    const std::int64_t batch = scale.dim() == 1 ? 1 : x.size(0);
    return {.element = element_of(x, "layer_norm"),
            .table_element = element_of(scale, "layer_norm"),
            .batch = batch,
            .rows = x.numel() / width / batch,
            .width = width,
            .scale_stride = stride_of(scale),
            .shift_stride = 0,
            .offset = offset,
            .eps = eps,
            .x = x.const_data_ptr(),
            .scale = scale.const_data_ptr(),
            .shift = nullptr,
            .y = nullptr};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<LayerNormOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double offset, double eps) {
  return kernels::call<kernels::LayerNormOp>(x, scale, shift, offset, eps);
}

}  // namespace rematch::fused
