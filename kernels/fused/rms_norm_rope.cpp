#include "kernels/fused/rms_norm_rope.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct RmsNormRopeOp {
  static constexpr auto kName = "rms_norm_rope";
  static constexpr auto kForward =
      "rms_norm_rope(Tensor x, Tensor weight, Tensor cosine, Tensor sine, float eps) -> Tensor";
  static constexpr auto kBackward =
      "rms_norm_rope_backward(Tensor grad_y, Tensor x, Tensor weight, Tensor cosine, Tensor sine, "
      "float eps, bool needs_weight) -> (Tensor, Tensor)";
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and weight

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& cosine,
                            const at::Tensor& sine, double eps) {
    check_inputs(x, weight, cosine, sine);
    const at::Tensor y = at::empty(x.sizes(), x.options());
    if (x.is_meta() || x.numel() == 0) return y;
    const Dense dense(x, weight, cosine, sine);
    RmsNormRope arguments = dense.arguments(x.size(1), eps);
    arguments.y = y.mutable_data_ptr();
    launch(x.device(), arguments);
    return y;
  }

  static Gradients backward(const at::Tensor& grad_y, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& cosine, const at::Tensor& sine, double eps,
                            bool needs_weight) {
    const at::Tensor grad_x = at::empty(x.sizes(), x.options());
    at::Tensor grad_weight;
    if (needs_weight) grad_weight = at::empty(weight.sizes(), weight.options());
    if (x.is_meta()) return {grad_x, grad_weight};
    if (x.numel() == 0) {
      if (needs_weight) grad_weight.zero_();
      return {grad_x, grad_weight};
    }
    const Dense dense(x, weight, cosine, sine);
    const at::Tensor grad_rows = rows_of(grad_y);
    RmsNormRopeBackward arguments = {.forward = dense.arguments(x.size(1), eps),
                                     .grad_stride = grad_rows.stride(0),
                                     .grad_y = grad_rows.const_data_ptr(),
                                     .grad_x = grad_x.mutable_data_ptr(),
                                     .grad_weight = nullptr,
                                     .partial = nullptr};
    at::Tensor partial;
    if (needs_weight) {
      partial = at::empty({num_row_blocks(dense.rows.size(0)), x.size(2)},
                          x.options().dtype(sum_dtype(x.scalar_type())));
      arguments.grad_weight = grad_weight.mutable_data_ptr();
      arguments.partial = partial.mutable_data_ptr();
    }
    launch(x.device(), arguments);
    return {grad_x, grad_weight};
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& cosine, const at::Tensor& sine, double eps) {
    return {.inputs = {x, weight},
            .kept = {x, weight, cosine, sine},
            .formula = [eps](const Saved& saved) {
              return gradients<RmsNormRopeOp>(saved.grad, saved.kept[0], saved.kept[1],
                                              saved.kept[2], saved.kept[3], eps,
                                              bool{saved.needed[1]});
            }};
  }

 private:
  static at::Tensor rows_of(const at::Tensor& x) {
    return with_dense_rows(x.reshape({-1, x.size(-1)}));
  }

  // The inputs as the kernels read them.
  struct Dense {
    Dense(const at::Tensor& x, const at::Tensor& given_weight, const at::Tensor& given_cosine,
          const at::Tensor& given_sine)
        : rows(rows_of(x)),
          weight(given_weight.contiguous()),
          cosine(given_cosine.to(sum_dtype(x.scalar_type())).contiguous()),
          sine(given_sine.to(sum_dtype(x.scalar_type())).contiguous()) {}

    RmsNormRope arguments(std::int64_t tokens, double eps) const {
      return {.element = element_of(rows, kName),
              .rows = rows.size(0),
              .tokens = tokens,
              .width = rows.size(1),
              .pairs = cosine.size(2),
              .x_stride = rows.stride(0),
              .eps = eps,
              .x = rows.const_data_ptr(),
              .weight = weight.const_data_ptr(),
              .cosine = cosine.const_data_ptr(),
              .sine = sine.const_data_ptr(),
              .y = nullptr};
    }

    at::Tensor rows, weight, cosine, sine;
  };

  static void check_table(const at::Tensor& table, const at::Tensor& x) {
    TORCH_CHECK(table.dim() == 3 && table.size(0) == x.size(1) && table.size(1) == 1 &&
                    table.size(2) > 0 && x.size(2) % (2 * table.size(2)) == 0 &&
                    table.scalar_type() == at::kFloat,
                "rematch::rms_norm_rope: cosine and sine must be float32, [tokens, 1, head_dim / "
                "2], and head_dim must divide x's width; found ",
                table.scalar_type(), " ", table.sizes(), " for x ", x.sizes());
    TORCH_CHECK(!table.requires_grad(), "rematch::rms_norm_rope: cosine and sine get no gradient");
  }

  static void check_inputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& cosine,
                           const at::Tensor& sine) {
    TORCH_CHECK(x.dim() == 3, "rematch::rms_norm_rope: x must be [batch, tokens, width], found ",
                x.sizes());
    TORCH_CHECK(
        weight.dim() == 1 && weight.size(0) == x.size(2) && weight.scalar_type() == x.scalar_type(),
        "rematch::rms_norm_rope: the weight must be [", x.size(2), "] of x's dtype ",
        x.scalar_type(), "; found ", weight.sizes(), " ", weight.scalar_type());
    check_table(cosine, x);
    check_table(sine, x);
    element_of(x, kName);
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<RmsNormRopeOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rms_norm_rope(const at::Tensor& x_BSD, const at::Tensor& weight_D,
                         const at::Tensor& cosine, const at::Tensor& sine, double eps) {
  return kernels::call<kernels::RmsNormRopeOp>(x_BSD, weight_D, cosine, sine, eps);
}

}  // namespace rematch::fused
