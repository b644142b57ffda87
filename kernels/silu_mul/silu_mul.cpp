#include "kernels/silu_mul/silu_mul.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <tuple>

#include "kernels/op/autograd.h"
#include "kernels/op/launch.h"
#include "kernels/silu_mul/silu_mul_kernels.h"

namespace rematch::kernels {
namespace {

using Gradients = std::tuple<at::Tensor, at::Tensor>;  // of gate and up

void check_inputs(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
              "rematch::silu_mul: gate and up must have one shape and dtype, found ", gate.sizes(),
              " ", gate.scalar_type(), ", ", up.sizes(), " ", up.scalar_type());
  element_of(gate, "silu_mul");
}

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
  check_inputs(gate, up);
  const at::Tensor out = at::empty(gate.sizes(), gate.options());
  if (gate.is_meta()) return out;
  const at::Tensor dense_gate = gate.contiguous();
  const at::Tensor dense_up = up.contiguous();
  launch<SiluMul>(gate.device(), REMATCH_KERNELS(silu_mul),
                  {.element = element_of(gate, "silu_mul"),
                   .size = gate.numel(),
                   .gate = dense_gate.const_data_ptr(),
                   .up = dense_up.const_data_ptr(),
                   .out = out.mutable_data_ptr()});
  return out;
}

Gradients silu_mul_backward(const at::Tensor& grad_out, const at::Tensor& gate,
                            const at::Tensor& up) {
  const at::Tensor grad_gate = at::empty(gate.sizes(), gate.options());
  const at::Tensor grad_up = at::empty(up.sizes(), up.options());
  if (gate.is_meta()) return {grad_gate, grad_up};
  const at::Tensor dense_grad = grad_out.contiguous();
  const at::Tensor dense_gate = gate.contiguous();
  const at::Tensor dense_up = up.contiguous();
  launch<SiluMulBackward>(gate.device(), REMATCH_KERNELS(silu_mul_backward),
                          {.element = element_of(gate, "silu_mul"),
                           .size = gate.numel(),
                           .grad_out = dense_grad.const_data_ptr(),
                           .gate = dense_gate.const_data_ptr(),
                           .up = dense_up.const_data_ptr(),
                           .grad_gate = grad_gate.mutable_data_ptr(),
                           .grad_up = grad_up.mutable_data_ptr()});
  return {grad_gate, grad_up};
}

at::Tensor silu_mul_autograd(c10::DispatchKeySet keys, const at::Tensor& gate,
                             const at::Tensor& up) {
  static const auto op = handle<decltype(silu_mul)>("rematch::silu_mul");
  static const auto backward = handle<decltype(silu_mul_backward)>("rematch::silu_mul_backward");
  const auto formula = [](const Saved& saved) -> std::vector<at::Tensor> {
    const auto [grad_gate, grad_up] = backward.call(saved.grad, saved.kept[0], saved.kept[1]);
    return {grad_gate, grad_up};
  };
  return differentiate({"RematchSiluMulBackward", {gate, up}, {gate, up}, formula},
                       [&]() -> std::vector<at::Tensor> {
                         return {op.redispatch(keys & c10::after_autograd_keyset, gate, up)};
                       })[0];
}

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("silu_mul(Tensor gate, Tensor up) -> Tensor");
  m.def("silu_mul_backward(Tensor grad_out, Tensor gate, Tensor up) -> (Tensor, Tensor)");
  for (const auto key : kDeviceKeys) {
    m.impl("silu_mul", torch::dispatch(key, TORCH_FN(silu_mul)));
    m.impl("silu_mul_backward", torch::dispatch(key, TORCH_FN(silu_mul_backward)));
  }
  m.impl("silu_mul", torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(silu_mul_autograd)));
  m.impl("silu_mul_backward", torch::dispatch(c10::DispatchKey::Autograd,
                                              torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
  static const auto op =
      kernels::handle<at::Tensor(const at::Tensor&, const at::Tensor&)>("rematch::silu_mul");
  return op.call(gate, up);
}

}  // namespace rematch::fused
