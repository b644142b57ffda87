#include "kernels/rope/rope.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include "kernels/op/autograd.h"
#include "kernels/op/launch.h"
#include "kernels/rope/rope_kernels.h"

namespace rematch::kernels {
namespace {

void check_table(const at::Tensor& table, const at::Tensor& x) {
  TORCH_CHECK(table.dim() == 3 && table.size(0) == x.size(1) && table.size(1) == 1 &&
                  2 * table.size(2) == x.size(3) && table.scalar_type() == at::kFloat,
              "rematch::rope: cosine and sine must be float32, [tokens, 1, head_dim / 2]; found ",
              table.scalar_type(), " ", table.sizes(), " for x ", x.sizes());
  TORCH_CHECK(!table.requires_grad(), "rematch::rope: cosine and sine get no gradient");
}

void check_inputs(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  TORCH_CHECK(x.dim() == 4, "rematch::rope: x must be [batch, tokens, heads, head_dim], found ",
              x.sizes());
  check_table(cosine, x);
  check_table(sine, x);
  element_of(x, "rope");
}

at::Tensor turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                double direction) {
  check_inputs(x, cosine, sine);
  const at::Tensor out = at::empty(x.sizes(), x.options());
  if (x.is_meta()) return out;
  const at::Tensor rows = with_dense_rows(x);
  const at::ScalarType table_dtype = sum_dtype(x.scalar_type());
  const at::Tensor used_cosine = cosine.to(table_dtype).contiguous();
  const at::Tensor used_sine = sine.to(table_dtype).contiguous();
  launch<Rope>(x.device(), REMATCH_KERNELS(rope),
               {.element = element_of(x, "rope"),
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

at::Tensor rope(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  return turn(x, cosine, sine, 1.0);
}

// A rotation's gradient is the rotation back.
at::Tensor rope_backward(const at::Tensor& grad_out, const at::Tensor& cosine,
                         const at::Tensor& sine) {
  return turn(grad_out, cosine, sine, -1.0);
}

at::Tensor rope_autograd(c10::DispatchKeySet keys, const at::Tensor& x, const at::Tensor& cosine,
                         const at::Tensor& sine) {
  static const auto op = handle<decltype(rope)>("rematch::rope");
  static const auto backward = handle<decltype(rope_backward)>("rematch::rope_backward");
  check_inputs(x, cosine, sine);
  const auto formula = [](const Saved& saved) -> std::vector<at::Tensor> {
    return {backward.call(saved.grad, saved.kept[0], saved.kept[1])};
  };
  return differentiate({"RematchRopeBackward", {x}, {cosine, sine}, formula},
                       [&]() -> std::vector<at::Tensor> {
                         return {op.redispatch(keys & c10::after_autograd_keyset, x, cosine, sine)};
                       })[0];
}

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("rope(Tensor x, Tensor cosine, Tensor sine) -> Tensor");
  m.def("rope_backward(Tensor grad_out, Tensor cosine, Tensor sine) -> Tensor");
  for (const auto key : kDeviceKeys) {
    m.impl("rope", torch::dispatch(key, TORCH_FN(rope)));
    m.impl("rope_backward", torch::dispatch(key, TORCH_FN(rope_backward)));
  }
  m.impl("rope", torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(rope_autograd)));
  m.impl("rope_backward", torch::dispatch(c10::DispatchKey::Autograd,
                                          torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor rope(const at::Tensor& x_BSHD, const at::Tensor& cosine, const at::Tensor& sine) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&);
  static const auto op = kernels::handle<Signature>("rematch::rope");
  return op.call(x_BSHD, cosine, sine);
}

}  // namespace rematch::fused
