#include "harness/trace/meta_kernels.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mse_loss_backward.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/native_dropout_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include "tests/support/catch.h"

namespace {

at::Tensor on(at::DeviceType device, const at::Tensor& tensor) {
  if (device == at::kCPU) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
}

using Results = std::vector<at::Tensor>;

// Runs `call` on meta and on the CPU, and requires that all results have the same layout.
void check_layout(const std::function<Results(at::DeviceType)>& call) {
  rematch::install_meta_kernels();
  const Results cpu = call(at::kCPU);
  const Results meta = call(at::kMeta);
  REQUIRE(cpu.size() == meta.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    CAPTURE(i);
    REQUIRE(cpu[i].defined() == meta[i].defined());
    if (!cpu[i].defined()) continue;
    CHECK(meta[i].is_meta());
    CHECK(meta[i].scalar_type() == cpu[i].scalar_type());
    CHECK(meta[i].sizes() == cpu[i].sizes());
    CHECK(meta[i].strides() == cpu[i].strides());
  }
}

// Returns three matrices: contiguous, transposed, and with gaps between rows.
Results layouts(at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  return {at::ones({3, 5, 8}, options), at::ones({3, 8, 5}, options).transpose(1, 2),
          at::ones({3, 5, 16}, options).slice(2, 0, 8)};
}

}  // namespace

TEST_CASE("index_select and embedding on meta have the layout of the CPU") {
  for (const at::Tensor& self : layouts(at::kFloat)) {
    for (const std::int64_t dim : {0, 1, -1}) {
      check_layout([&](at::DeviceType device) -> Results {
        const at::Tensor index = at::zeros({7}, at::TensorOptions().dtype(at::kLong));
        return {at::index_select(on(device, self), dim, on(device, index))};
      });
    }
  }
  check_layout([](at::DeviceType device) -> Results {
    const at::Tensor indices = at::zeros({4, 6}, at::TensorOptions().dtype(at::kLong));
    return {at::embedding(on(device, at::ones({10, 5})), on(device, indices))};
  });
}

TEST_CASE("embedding_dense_backward on meta has the layout of the CPU") {
  for (const at::Tensor& grad : layouts(at::kFloat)) {
    check_layout([&](at::DeviceType device) -> Results {
      const at::Tensor indices = at::zeros({3, 5}, at::TensorOptions().dtype(at::kLong));
      return {at::embedding_dense_backward(on(device, grad), on(device, indices), 11, -1, false)};
    });
  }
}

TEST_CASE("native_layer_norm and its backward on meta have the layout of the CPU") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto weight_dtype : {at::kFloat, dtype}) {
      for (const at::Tensor& input : layouts(dtype)) {
        for (const bool affine : {true, false}) {
          CAPTURE(dtype, weight_dtype, input.strides(), affine);
          check_layout([&](at::DeviceType device) -> Results {
            const at::Tensor x = on(device, input);
            const at::Tensor weight =
                affine ? on(device, at::ones({8}, at::TensorOptions().dtype(weight_dtype)))
                       : at::Tensor();
            const auto [out, mean, rstd] = at::native_layer_norm(x, {8}, weight, weight, 1e-6);
            const auto [grad_x, grad_weight, grad_bias] = at::native_layer_norm_backward(
                out, x, {8}, mean, rstd, weight, weight, {true, affine, affine});
            return {out, mean, rstd, grad_x, grad_weight, grad_bias};
          });
        }
      }
    }
  }
}

TEST_CASE("mse_loss_backward on meta has the layout of the CPU") {
  for (const at::Tensor& input : layouts(at::kFloat)) {
    check_layout([&](at::DeviceType device) -> Results {
      const at::Tensor target = on(device, at::zeros({3, 5, 8}));
      const at::Tensor grad = on(device, at::ones({}));
      return {at::mse_loss_backward(grad, on(device, input), target, /*mean*/ 1)};
    });
  }
}

TEST_CASE("aten::where on meta has the shapes and strides of the CPU") {
  for (const at::Tensor& self : layouts(at::kFloat)) {
    for (const at::Tensor& other :
         {at::ones({8}), at::ones({3, 1, 8}).to(at::kDouble), at::ones({2, 3, 5, 8})}) {
      check_layout([&](at::DeviceType device) -> Results {
        const at::Tensor condition = on(device, at::ones({5, 1}).to(at::kBool));
        return {at::where(condition, on(device, self), on(device, other)),
                at::where(condition, on(device, self), at::scalar_tensor(2.0))};
      });
    }
  }
}

TEST_CASE("native_dropout and its backward on meta have the layout of the CPU") {
  for (const at::Tensor& input : layouts(at::kFloat)) {
    for (const std::optional<bool> train : {std::optional<bool>(), std::optional(false)}) {
      check_layout([&](at::DeviceType device) -> Results {
        const auto [out, mask] = at::native_dropout(on(device, input), 0.5, train);
        return {out, mask, at::native_dropout_backward(out, mask, 2.0)};
      });
    }
  }
}

// The groups end at rows 2, 4 and 6. Rows of 5 numbers are not a multiple of 16 bytes, so the rows
// of the product are padded.
TEST_CASE("_grouped_mm on meta has the layout of the CPU") {
  const at::Tensor ends = at::arange(1, 4, at::TensorOptions().dtype(at::kInt)).mul_(2);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto options = at::TensorOptions().dtype(dtype);
    for (const std::int64_t width : {5, 8}) {
      CAPTURE(dtype, width);
      check_layout([&](at::DeviceType device) -> Results {
        const auto ones = [&](at::IntArrayRef sizes) {
          return on(device, at::ones(sizes, options));
        };
        const at::Tensor offs = on(device, ends);
        const at::Tensor experts = ones({3, width, 16}).transpose(1, 2);
        return {at::_grouped_mm(ones({6, 16}), experts, offs),
                at::_grouped_mm(ones({6, 8}).t(), ones({6, 8}).narrow(1, 0, width), offs),
                at::_grouped_mm(ones({3, width, 16}), ones({6, 16}).t(), offs),
                at::_grouped_mm(ones({3, 4, 16}), experts)};
      });
    }
  }
}

TEST_CASE("the fused optimizer runs on meta and allocates nothing new") {
  rematch::install_meta_kernels();
  const auto meta = at::TensorOptions().device(at::kMeta);
  const Results parameters = {at::zeros({4, 3}, meta)};
  const Results gradients = {at::zeros({4, 3}, meta)};
  const Results first = {at::zeros({4, 3}, meta)};
  const Results second = {at::zeros({4, 3}, meta)};
  const Results steps = {at::zeros({}, meta)};
  CHECK_NOTHROW(at::_fused_adamw_(parameters, gradients, first, second, {}, steps, /*lr=*/1e-3, 0.9,
                                  0.95, 0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false));
}
