#include "kernels/fused/bias_gelu.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct BiasGeluOp {
  static constexpr auto kName = "bias_gelu";
  static constexpr auto kForward = "bias_gelu(Tensor x, Tensor bias) -> Tensor";
  static constexpr auto kBackward =
      "bias_gelu_backward(Tensor grad_y, Tensor x, Tensor bias, bool needs_bias) -> (Tensor, "
      "Tensor)";
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and bias

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& bias) {
    check_inputs(x, bias);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return y;
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_bias = bias.contiguous();
    BiasGelu arguments = arguments_of(dense_x, dense_bias);
    arguments.y = y.mutable_data_ptr();
    launch(x.device(), arguments);
    return y;
  }

  static Gradients backward(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& bias,
                            bool needs_bias) {
    const at::Tensor grad_x = at::empty(x.sizes(), x.options());
    at::Tensor grad_bias;
    if (needs_bias) grad_bias = at::empty(bias.sizes(), bias.options());
    if (x.is_meta()) return {grad_x, grad_bias};
    if (x.numel() == 0) {
      if (needs_bias) grad_bias.zero_();
      return {grad_x, grad_bias};
    }
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_bias = bias.contiguous();
    const at::Tensor dense_grad = grad_y.contiguous();
    BiasGeluBackward arguments = {.forward = arguments_of(dense_x, dense_bias),
                                  .grad_y = dense_grad.const_data_ptr(),
                                  .grad_x = grad_x.mutable_data_ptr(),
                                  .grad_bias = nullptr,
                                  .partial = nullptr};
    at::Tensor partial;
    if (needs_bias) {
      partial = at::empty({num_row_blocks(arguments.forward.rows), arguments.forward.width},
                          x.options().dtype(sum_dtype(x.scalar_type())));
      arguments.grad_bias = grad_bias.mutable_data_ptr();
      arguments.partial = partial.mutable_data_ptr();
    }
    launch(x.device(), arguments);
    return {grad_x, grad_bias};
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& bias) {
    return {.inputs = {x, bias}, .kept = {x, bias}, .formula = [](const Saved& saved) {
              return gradients<BiasGeluOp>(saved.grad, saved.kept[0], saved.kept[1],
                                           bool{saved.needed[1]});
            }};
  }

 private:
  static void check_inputs(const at::Tensor& x, const at::Tensor& bias) {
    TORCH_CHECK(x.dim() > 0 && bias.dim() == 1 && bias.size(0) == x.size(-1) &&
                    bias.scalar_type() == x.scalar_type(),
                "rematch::bias_gelu: the bias must have x's dtype and the size of x's last "
                "dimension; found ",
                bias.sizes(), " ", bias.scalar_type(), " for x ", x.sizes(), " ", x.scalar_type());
    element_of(x, kName);
  }

  static BiasGelu arguments_of(const at::Tensor& x, const at::Tensor& bias) {
    return {.element = element_of(x, kName),
            .rows = x.numel() / x.size(-1),
            .width = x.size(-1),
            .x = x.const_data_ptr(),
            .bias = bias.const_data_ptr(),
            .y = nullptr};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<BiasGeluOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  return kernels::call<kernels::BiasGeluOp>(x, bias);
}

}  // namespace rematch::fused
