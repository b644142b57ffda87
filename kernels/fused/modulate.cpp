#include "kernels/fused/modulate.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct ModulateOp {
  static constexpr auto kForward =
      "modulate(Tensor x, Tensor shift, Tensor scale, ScalarType dtype) -> Tensor";
  static constexpr auto kBackward =
      "modulate_backward(Tensor grad_out, Tensor x, Tensor scale) -> (Tensor, Tensor, Tensor)";
  // The gradients of x, shift and scale.
  using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                            at::ScalarType dtype) {
    check_inputs(x, shift, scale, dtype);
    const at::Tensor out = at::empty(x.sizes(), x.options().dtype(dtype));
    if (x.is_meta()) return out;
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_shift = with_dense_rows(shift);
    const at::Tensor dense_scale = with_dense_rows(scale);
    Modulate arguments = arguments_of(dense_x, dense_scale, out);
    arguments.shift_stride = dense_shift.stride(0);
    arguments.shift = dense_shift.const_data_ptr();
    arguments.out = out.mutable_data_ptr();
    launch(x.device(), arguments);
    return out;
  }

  static Gradients backward(const at::Tensor& grad_out, const at::Tensor& x,
                            const at::Tensor& scale) {
    const at::Tensor grad_x = at::empty(x.sizes(), x.options());
    const at::Tensor grad_shift = at::empty(scale.sizes(), scale.options());
    const at::Tensor grad_scale = at::empty(scale.sizes(), scale.options());
    if (x.is_meta()) return {grad_x, grad_shift, grad_scale};
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_scale = with_dense_rows(scale);
    const at::Tensor dense_grad = grad_out.contiguous();
    const at::Tensor partial = at::empty({2, x.size(0), num_row_blocks(x.size(1)), x.size(2)},
                                         x.options().dtype(sum_dtype(x.scalar_type())));
    launch(x.device(), ModulateBackward{.forward = arguments_of(dense_x, dense_scale, dense_grad),
                                        .grad_out = dense_grad.const_data_ptr(),
                                        .grad_x = grad_x.mutable_data_ptr(),
                                        .grad_shift = grad_shift.mutable_data_ptr(),
                                        .grad_scale = grad_scale.mutable_data_ptr(),
                                        .partial = partial.mutable_data_ptr()});
    return {grad_x, grad_shift, grad_scale};
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& shift,
                               const at::Tensor& scale, at::ScalarType /*dtype*/) {
    return {.inputs = {x, shift, scale}, .kept = {x, scale}, .formula = [](const Saved& saved) {
              return gradients<ModulateOp>(saved.grad, saved.kept[0], saved.kept[1]);
            }};
  }

 private:
  static void check_inputs(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                           at::ScalarType dtype) {
    const auto is_table = [&x](const at::Tensor& table) {
      return table.dim() == 3 && table.size(0) == x.size(0) && table.size(1) == 1 &&
             table.size(2) == x.size(2);
    };
    TORCH_CHECK(x.dim() == 3 && is_table(shift) && is_table(scale),
                "rematch::modulate: x must be [batch, tokens, width], shift and scale [batch, 1, "
                "width]; found ",
                x.sizes(), ", ", shift.sizes(), ", ", scale.sizes());
    TORCH_CHECK(x.scalar_type() == shift.scalar_type() && x.scalar_type() == scale.scalar_type(),
                "rematch::modulate: x, shift and scale must have the same dtype, found ",
                x.scalar_type(), ", ", shift.scalar_type(), ", ", scale.scalar_type());
    TORCH_CHECK(
        dtype == x.scalar_type() || (x.scalar_type() == at::kFloat && dtype == at::kBFloat16),
        "rematch::modulate: the result must have x's dtype, or be bfloat16 for float32; found ",
        dtype, " for ", x.scalar_type());
    element_of(x, "modulate");
  }

  static Modulate arguments_of(const at::Tensor& x, const at::Tensor& scale,
                               const at::Tensor& out) {
    return {.element = element_of(x, "modulate"),
            .out_element = element_of(out, "modulate"),
            .batch = x.size(0),
            .rows = x.size(1),
            .width = x.size(2),
            .shift_stride = 0,
            .scale_stride = scale.stride(0),
            .x = x.const_data_ptr(),
            .shift = nullptr,
            .scale = scale.const_data_ptr(),
            .out = nullptr};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<ModulateOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor modulate(const at::Tensor& x_BND, const at::Tensor& shift_B1D,
                    const at::Tensor& scale_B1D, at::ScalarType dtype) {
  return kernels::call<kernels::ModulateOp>(x_BND, shift_B1D, scale_B1D, dtype);
}

}  // namespace rematch::fused
