#include "kernels/fused/gated_add.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct GatedAddOp {
  static constexpr auto kForward = "gated_add(Tensor x, Tensor branch, Tensor gate) -> Tensor";
  static constexpr auto kBackward =
      "gated_add_backward(Tensor grad_out, Tensor branch, Tensor gate) -> (Tensor, Tensor)";
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of branch and gate

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate) {
    check_inputs(x, branch, gate);
    const at::Tensor out = at::empty(x.sizes(), x.options());
    if (x.is_meta()) return out;
    const at::Tensor dense_x = x.contiguous();
    const at::Tensor dense_branch = branch.contiguous();
    const at::Tensor dense_gate = with_dense_rows(gate);
    GatedAdd arguments = arguments_of(dense_branch, dense_gate);
    arguments.x = dense_x.const_data_ptr();
    arguments.out = out.mutable_data_ptr();
    launch(x.device(), arguments);
    return out;
  }

  static Gradients backward(const at::Tensor& grad_out, const at::Tensor& branch,
                            const at::Tensor& gate) {
    const at::Tensor grad_branch = at::empty(branch.sizes(), branch.options());
    const at::Tensor grad_gate = at::empty(gate.sizes(), gate.options());
    if (branch.is_meta()) return {grad_branch, grad_gate};
    const at::Tensor dense_branch = branch.contiguous();
    const at::Tensor dense_gate = with_dense_rows(gate);
    const at::Tensor dense_grad = grad_out.contiguous();
    const at::Tensor partial =
        at::empty({branch.size(0), num_row_blocks(branch.size(1)), branch.size(2)},
                  branch.options().dtype(sum_dtype(branch.scalar_type())));
    launch(branch.device(), GatedAddBackward{.forward = arguments_of(dense_branch, dense_gate),
                                             .grad_out = dense_grad.const_data_ptr(),
                                             .grad_branch = grad_branch.mutable_data_ptr(),
                                             .grad_gate = grad_gate.mutable_data_ptr(),
                                             .partial = partial.mutable_data_ptr()});
    return {grad_branch, grad_gate};
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& branch,
                               const at::Tensor& gate) {
    const auto formula = [](const Saved& saved) -> std::vector<at::Tensor> {
      if (!saved.needed[1] && !saved.needed[2]) return {saved.grad, at::Tensor(), at::Tensor()};
      const std::vector<at::Tensor> found =
          gradients<GatedAddOp>(saved.grad, saved.kept[0], saved.kept[1]);
      return {saved.grad, found[0], found[1]};
    };
    return {.inputs = {x, branch, gate}, .kept = {branch, gate}, .formula = formula};
  }

 private:
  static void check_inputs(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& gate) {
    TORCH_CHECK(x.dim() == 3 && branch.sizes() == x.sizes() && gate.dim() == 3 &&
                    gate.size(0) == x.size(0) && gate.size(1) == 1 && gate.size(2) == x.size(2),
                "rematch::gated_add: x and branch must be [batch, tokens, width], gate [batch, 1, "
                "width]; found ",
                x.sizes(), ", ", branch.sizes(), ", ", gate.sizes());
    TORCH_CHECK(x.scalar_type() == branch.scalar_type(),
                "rematch::gated_add: x and branch must have the same dtype, found ",
                x.scalar_type(), ", ", branch.scalar_type());
    TORCH_CHECK(
        gate.scalar_type() == x.scalar_type() ||
            (x.scalar_type() == at::kBFloat16 && gate.scalar_type() == at::kFloat),
        "rematch::gated_add: the gate must have x's dtype, or be float32 for bfloat16; found ",
        gate.scalar_type(), " for ", x.scalar_type());
    element_of(x, "gated_add");
  }

  static GatedAdd arguments_of(const at::Tensor& branch, const at::Tensor& gate) {
    return {.element = element_of(branch, "gated_add"),
            .gate_element = element_of(gate, "gated_add"),
            .batch = branch.size(0),
            .rows = branch.size(1),
            .width = branch.size(2),
            .gate_stride = gate.stride(0),
            .x = nullptr,
            .branch = branch.const_data_ptr(),
            .gate = gate.const_data_ptr(),
            .out = nullptr};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<GatedAddOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor gated_add(const at::Tensor& x_BND, const at::Tensor& branch_BND,
                     const at::Tensor& gate_B1D) {
  return kernels::call<kernels::GatedAddOp>(x_BND, branch_BND, gate_B1D);
}

}  // namespace rematch::fused
