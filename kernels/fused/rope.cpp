#include "kernels/fused/rope.h"

#include <ATen/ops/empty.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

struct RopeOp {
  static constexpr auto kForward = "rope(Tensor x, Tensor cosine, Tensor sine) -> Tensor";
  static constexpr auto kBackward =
      "rope_backward(Tensor grad_out, Tensor cosine, Tensor sine) -> Tensor";

  static at::Tensor forward(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    return turn(x, cosine, sine, 1.0);
  }

  // The gradient of a rotation is the inverse rotation.
  static at::Tensor backward(const at::Tensor& grad_out, const at::Tensor& cosine,
                             const at::Tensor& sine) {
    return turn(grad_out, cosine, sine, -1.0);
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& cosine,
                               const at::Tensor& sine) {
    check_inputs(x, cosine, sine);
    return {.inputs = {x}, .kept = {cosine, sine}, .formula = [](const Saved& saved) {
              return gradients<RopeOp>(saved.grad, saved.kept[0], saved.kept[1]);
            }};
  }

 private:
  static void check_table(const at::Tensor& table, const at::Tensor& x) {
    TORCH_CHECK(table.dim() == 3 && table.size(0) == x.size(1) && table.size(1) == 1 &&
                    2 * table.size(2) == x.size(3) && table.scalar_type() == at::kFloat,
                "rematch::rope: cosine and sine must be float32, [tokens, 1, head_dim / 2]; found ",
                table.scalar_type(), " ", table.sizes(), " for x ", x.sizes());
    TORCH_CHECK(!table.requires_grad(), "rematch::rope: cosine and sine get no gradient");
  }

  static void check_inputs(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    TORCH_CHECK(x.dim() == 4, "rematch::rope: x must be [batch, tokens, heads, head_dim], found ",
                x.sizes());
    check_table(cosine, x);
    check_table(sine, x);
    element_of(x, "rope");
  }

  static at::Tensor turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                         double direction) {
    check_inputs(x, cosine, sine);
    const at::Tensor out = at::empty(x.sizes(), x.options());
    if (x.is_meta()) return out;
    const at::Tensor rows = with_dense_rows(x);
    const at::ScalarType table_dtype = sum_dtype(x.scalar_type());
    const at::Tensor used_cosine = cosine.to(table_dtype).contiguous();
    const at::Tensor used_sine = sine.to(table_dtype).contiguous();
    launch(x.device(), Rope{.element = element_of(x, "rope"),
                            .batch = x.size(0),
                            .tokens = x.size(1),
                            .heads = x.size(2),
                            .pairs = x.size(3) / 2,
                            .batch_stride = rows.stride(0),
                            .token_stride = rows.stride(1),
                            .head_stride = rows.stride(2),
                            .direction = direction,
                            .x = rows.const_data_ptr(),
                            .cosine = used_cosine.const_data_ptr(),
                            .sine = used_sine.const_data_ptr(),
                            .out = out.mutable_data_ptr()});
    return out;
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<RopeOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rope(const at::Tensor& x_BSHD, const at::Tensor& cosine, const at::Tensor& sine) {
  return kernels::call<kernels::RopeOp>(x_BSHD, cosine, sine);
}

}  // namespace rematch::fused
