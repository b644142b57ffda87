#include "kernels/fused/rms_norm.h"

#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

at::Tensor norm_rows(const at::Tensor& x) { return with_dense_rows(x.reshape({-1, x.size(-1)})); }

void check_norm(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(x.dim() > 0, "rematch::", op, ": x must have a dimension to normalise");
  if (!weight.defined()) return;
  TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(-1), "rematch::", op,
              ": the weight must be [", x.size(-1), "], as x's last dimension; found ",
              weight.sizes());
  TORCH_CHECK(weight.scalar_type() == x.scalar_type(), "rematch::", op,
              ": x and weight must have the same dtype, found ", x.scalar_type(), ", ",
              weight.scalar_type());
}

RmsNorm norm_arguments(const char* op, const at::Tensor& rows, const at::Tensor& weight,
                       double eps) {
  return {.element = element_of(rows, op),
          .rows = rows.size(0),
          .width = rows.size(1),
          .x_stride = rows.stride(0),
          .eps = eps,
          .x = rows.const_data_ptr(),
          .weight = weight.defined() ? weight.const_data_ptr() : nullptr,
          .y = nullptr};
}

struct NormGradients {
  at::Tensor x, weight;
};

// Allocates the gradients and computes them. `grad_sum` may be undefined.
NormGradients differentiate_norm(const char* op, const at::Tensor& grad_y,
                                 const at::Tensor& grad_sum, const at::Tensor& x, at::Tensor weight,
                                 double eps, bool needs_weight) {
  NormGradients gradients{at::empty(x.sizes(), x.options()), {}};
  if (needs_weight) gradients.weight = at::empty(weight.sizes(), weight.options());
  if (x.is_meta()) return gradients;
  if (x.numel() == 0) {
    if (needs_weight) gradients.weight.zero_();
    return gradients;
  }
  if (weight.defined()) weight = weight.contiguous();
  const at::Tensor rows = norm_rows(x);
  const at::Tensor grad_rows = norm_rows(grad_y);
  RmsNormBackward arguments = {.forward = norm_arguments(op, rows, weight, eps),
                               .grad_stride = grad_rows.stride(0),
                               .grad_y = grad_rows.const_data_ptr(),
                               .grad_x = gradients.x.mutable_data_ptr(),
                               .grad_weight = nullptr,
                               .partial = nullptr};
  at::Tensor sum_rows;
  if (grad_sum.defined()) {
    sum_rows = norm_rows(grad_sum);
    arguments.grad_sum_stride = sum_rows.stride(0);
    arguments.grad_sum = sum_rows.const_data_ptr();
  }
  at::Tensor partial;
  if (needs_weight) {
    partial = at::empty({num_row_blocks(rows.size(0)), rows.size(1)},
                        x.options().dtype(sum_dtype(x.scalar_type())));
    arguments.grad_weight = gradients.weight.mutable_data_ptr();
    arguments.partial = partial.mutable_data_ptr();
  }
  launch(x.device(), arguments);
  return gradients;
}

struct RmsNormOp {
  static constexpr auto kName = "rms_norm";
  static constexpr auto kForward = "rms_norm(Tensor x, Tensor? weight, float eps) -> Tensor";
  static constexpr auto kBackward =
      "rms_norm_backward(Tensor grad_y, Tensor x, Tensor? weight, float eps, bool needs_weight) "
      "-> (Tensor, Tensor)";
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and weight

  static at::Tensor forward(const at::Tensor& x, const OptionalTensor& weight, double eps) {
    at::Tensor used_weight = weight.value_or(at::Tensor());
    check_norm(kName, x, used_weight);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return y;
    if (used_weight.defined()) used_weight = used_weight.contiguous();
    const at::Tensor rows = norm_rows(x);
    RmsNorm arguments = norm_arguments(kName, rows, used_weight, eps);
    arguments.y = y.mutable_data_ptr();
    launch(x.device(), arguments);
    return y;
  }

  static Gradients backward(const at::Tensor& grad_y, const at::Tensor& x,
                            const OptionalTensor& weight, double eps, bool needs_weight) {
    const NormGradients gradients = differentiate_norm(
        kName, grad_y, at::Tensor(), x, weight.value_or(at::Tensor()), eps, needs_weight);
    return {gradients.x, gradients.weight};
  }

  static Derivative derivative(const at::Tensor& x, const OptionalTensor& weight, double eps) {
    const std::vector<at::Tensor> inputs = {x, weight.value_or(at::Tensor())};
    return {.inputs = inputs, .kept = inputs, .formula = [eps](const Saved& saved) {
              return gradients<RmsNormOp>(saved.grad, saved.kept[0], saved.kept[1], eps,
                                          bool{saved.needed[1]});
            }};
  }
};

struct AddRmsNormOp {
  static constexpr auto kName = "add_rms_norm";
  static constexpr auto kForward =
      "add_rms_norm(Tensor x, Tensor branch, Tensor weight, float eps) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "add_rms_norm_backward(Tensor grad_y, Tensor? grad_sum, Tensor sum, Tensor weight, float "
      "eps, bool needs_weight) -> (Tensor, Tensor)";
  using Results = std::tuple<at::Tensor, at::Tensor>;    // the norm and the sum
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of the sum and the weight

  static Results forward(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                         double eps) {
    check_norm(kName, x, weight);
    TORCH_CHECK(x.sizes() == branch.sizes() && x.scalar_type() == branch.scalar_type(),
                "rematch::add_rms_norm: x and branch must have the same shape and dtype, found ",
                x.sizes(), " ", x.scalar_type(), ", ", branch.sizes(), " ", branch.scalar_type());
    const at::Tensor y = at::empty(x.sizes(), x.options());
    const at::Tensor sum = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return {y, sum};
    const at::Tensor rows = norm_rows(x);
    const at::Tensor branch_rows = norm_rows(branch);
    const at::Tensor dense_weight = weight.contiguous();
    RmsNorm arguments = norm_arguments(kName, rows, dense_weight, eps);
    arguments.y = y.mutable_data_ptr();
    arguments.branch_stride = branch_rows.stride(0);
    arguments.branch = branch_rows.const_data_ptr();
    arguments.sum = sum.mutable_data_ptr();
    launch(x.device(), arguments);
    return {y, sum};
  }

  static Gradients backward(const at::Tensor& grad_y, const OptionalTensor& grad_sum,
                            const at::Tensor& sum, const at::Tensor& weight, double eps,
                            bool needs_weight) {
    const NormGradients gradients = differentiate_norm(
        kName, grad_y, grad_sum.value_or(at::Tensor()), sum, weight, eps, needs_weight);
    return {gradients.x, gradients.weight};
  }

  // The gradient of the sum is the gradient of x and of branch.
  static Derivative derivative(const at::Tensor& x, const at::Tensor& branch,
                               const at::Tensor& weight, double eps) {
    const auto formula = [eps](const Saved& saved) -> std::vector<at::Tensor> {
      if (!saved.grad.defined()) return {saved.second_grad, saved.second_grad, at::Tensor()};
      const auto grad_sum =
          saved.second_grad.defined() ? std::optional(saved.second_grad) : std::nullopt;
      const std::vector<at::Tensor> found = gradients<AddRmsNormOp>(
          saved.grad, grad_sum, saved.outputs[0], saved.kept[0], eps, bool{saved.needed[2]});
      return {found[0], found[0], found[1]};
    };
    return {.inputs = {x, branch, weight},
            .kept = {weight},
            .formula = formula,
            .second_has_gradient = true};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  register_op<RmsNormOp>(library);
  register_op<AddRmsNormOp>(library);
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const auto given = weight.defined() ? std::optional(weight) : std::nullopt;
  return kernels::call<kernels::RmsNormOp>(x, given, eps);
}

std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& branch,
                                                const at::Tensor& weight, double eps) {
  return kernels::call<kernels::AddRmsNormOp>(x, branch, weight, eps);
}

}  // namespace rematch::fused
