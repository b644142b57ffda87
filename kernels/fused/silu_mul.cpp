#include "kernels/fused/silu_mul.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct SiluMulOp {
  static constexpr auto kForward = "silu_mul(Tensor gate, Tensor up) -> Tensor";
  static constexpr auto kBackward =
      "silu_mul_backward(Tensor grad_out, Tensor gate, Tensor up) -> (Tensor, Tensor)";
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of gate and up

  static at::Tensor forward(const at::Tensor& gate, const at::Tensor& up) {
    check_inputs(gate, up);
    const at::Tensor out = at::empty(gate.sizes(), gate.options());
    if (gate.is_meta()) return out;
    const at::Tensor dense_gate = gate.contiguous();
    const at::Tensor dense_up = up.contiguous();
    launch(gate.device(), SiluMul{.element = element_of(gate, "silu_mul"),
                                  .size = gate.numel(),
                                  .gate = dense_gate.const_data_ptr(),
                                  .up = dense_up.const_data_ptr(),
                                  .out = out.mutable_data_ptr()});
    return out;
  }

  static Gradients backward(const at::Tensor& grad_out, const at::Tensor& gate,
                            const at::Tensor& up) {
    const at::Tensor grad_gate = at::empty(gate.sizes(), gate.options());
    const at::Tensor grad_up = at::empty(up.sizes(), up.options());
    if (gate.is_meta()) return {grad_gate, grad_up};
    const at::Tensor dense_grad = grad_out.contiguous();
    const at::Tensor dense_gate = gate.contiguous();
    const at::Tensor dense_up = up.contiguous();
    launch(gate.device(), SiluMulBackward{.element = element_of(gate, "silu_mul"),
                                          .size = gate.numel(),
                                          .grad_out = dense_grad.const_data_ptr(),
                                          .gate = dense_gate.const_data_ptr(),
                                          .up = dense_up.const_data_ptr(),
                                          .grad_gate = grad_gate.mutable_data_ptr(),
                                          .grad_up = grad_up.mutable_data_ptr()});
    return {grad_gate, grad_up};
  }

  static Derivative derivative(const at::Tensor& gate, const at::Tensor& up) {
    return {.inputs = {gate, up}, .kept = {gate, up}, .formula = [](const Saved& saved) {
              return gradients<SiluMulOp>(saved.grad, saved.kept[0], saved.kept[1]);
            }};
  }

 private:
  static void check_inputs(const at::Tensor& gate, const at::Tensor& up) {
    TORCH_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
                "rematch::silu_mul: gate and up must have the same shape and dtype, found ",
                gate.sizes(), " ", gate.scalar_type(), ", ", up.sizes(), " ", up.scalar_type());
    element_of(gate, "silu_mul");
  }
};

struct PackedSiluMulOp {
  static constexpr auto kName = "packed_silu_mul";
  static constexpr auto kForward = "packed_silu_mul(Tensor x) -> Tensor";
  static constexpr auto kBackward = "packed_silu_mul_backward(Tensor grad_out, Tensor x) -> Tensor";

  static at::Tensor forward(const at::Tensor& x) {
    TORCH_CHECK(x.dim() == 2 && x.size(1) % 2 == 0,
                "rematch::packed_silu_mul: x must be [tokens, 2 * width], found ", x.sizes());
    const Element element = element_of(x, kName);
    const std::int64_t width = x.size(1) / 2;
    const at::Tensor out = at::empty({x.size(0), width}, x.options());
    if (x.is_meta()) return out;
    const at::Tensor dense = x.contiguous();
    launch(x.device(), SiluMul{.element = element,
                               .size = out.numel(),
                               .gate = dense.const_data_ptr(),
                               .up = up_of(dense).const_data_ptr(),
                               .out = out.mutable_data_ptr(),
                               .width = width});
    return out;
  }

  static at::Tensor backward(const at::Tensor& grad_out, const at::Tensor& x) {
    const at::Tensor grad_x = at::empty(x.sizes(), x.options());
    if (x.is_meta()) return grad_x;
    const at::Tensor dense_grad = grad_out.contiguous();
    const at::Tensor dense = x.contiguous();
    launch(x.device(), SiluMulBackward{.element = element_of(x, kName),
                                       .size = dense_grad.numel(),
                                       .grad_out = dense_grad.const_data_ptr(),
                                       .gate = dense.const_data_ptr(),
                                       .up = up_of(dense).const_data_ptr(),
                                       .grad_gate = grad_x.mutable_data_ptr(),
                                       .grad_up = up_of(grad_x).mutable_data_ptr(),
                                       .width = x.size(1) / 2});
    return grad_x;
  }

  static Derivative derivative(const at::Tensor& x) {
    return {.inputs = {x}, .kept = {x}, .formula = [](const Saved& saved) {
              return gradients<PackedSiluMulOp>(saved.grad, saved.kept[0]);
            }};
  }

 private:
  static at::Tensor up_of(const at::Tensor& x) { return x.narrow(1, x.size(1) / 2, x.size(1) / 2); }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  register_op<SiluMulOp>(library);
  register_op<PackedSiluMulOp>(library);
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
  return kernels::call<kernels::SiluMulOp>(gate, up);
}

at::Tensor packed_silu_mul(const at::Tensor& x_T2F) {
  return kernels::call<kernels::PackedSiluMulOp>(x_T2F);
}

}  // namespace rematch::fused
