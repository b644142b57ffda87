// Tests grouped matmuls that read on the device where their groups end. Their use lasts as long as
// the process.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/grouped/grouped_mm.h"
#include "tests/support/cuda.h"

namespace rematch {
namespace {

constexpr std::int64_t kRows = 96;
constexpr std::int64_t kIn = 24;
constexpr std::int64_t kOut = 40;
const std::vector<std::int32_t> kEnds = {0, 11, 11, 80, 96};
const auto kGroups = static_cast<std::int64_t>(kEnds.size());

at::TensorOptions on_cuda(at::ScalarType dtype) {
  return at::TensorOptions().device(c10::Device(c10::kCUDA, 0)).dtype(dtype);
}

struct Operands {
  at::Tensor a, b;
};

// One pair of each kind that has groups: they divide the rows of a, the columns of b, or both.
std::vector<Operands> operands(at::ScalarType dtype) {
  const at::Tensor x_RI = at::randn({kRows, kIn}, on_cuda(dtype));
  const at::Tensor grad_RO = at::randn({kRows, kOut}, on_cuda(dtype));
  const at::Tensor weight_EOI = at::randn({kGroups, kOut, kIn}, on_cuda(dtype));
  return {{x_RI, weight_EOI.transpose(1, 2)},
          {grad_RO, weight_EOI},
          {weight_EOI, x_RI.t()},
          {grad_RO.t(), x_RI}};
}

at::Tensor ends() { return at::tensor(kEnds, at::kInt).to(c10::Device(c10::kCUDA, 0)); }

at::Tensor product_of_each_group(const Operands& operands, const at::Tensor& like) {
  at::Tensor out = at::zeros_like(like);
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const std::int64_t size = kEnds[group] - begin;
    const auto [a, b] = operands;
    if (a.dim() == 3) {
      out.narrow(1, begin, size).copy_(at::mm(a[group], b.narrow(1, begin, size)));
    } else if (b.dim() == 3) {
      out.narrow(0, begin, size).copy_(at::mm(a.narrow(0, begin, size), b[group]));
    } else if (size > 0) {
      out[group].copy_(at::mm(a.narrow(1, begin, size), b.narrow(0, begin, size)));
    }
    begin = kEnds[group];
  }
  return out;
}

TEST_CASE("grouped matmuls on the device return the layout of LibTorch's", "[device]") {
  REMATCH_NEEDS_CUDA();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor row_ends = ends();
    std::vector<at::Tensor> by_libtorch;
    for (const auto& [a, b] : operands(dtype)) {
      by_libtorch.push_back(at::_grouped_mm(a, b, row_ends));
    }
    use_grouped_mm_on_device();
    std::size_t kind = 0;
    for (const auto& [a, b] : operands(dtype)) {
      CAPTURE(kind, dtype);
      const at::Tensor out = at::_grouped_mm(a, b, row_ends);
      CHECK(out.sizes() == by_libtorch[kind].sizes());
      CHECK(out.strides() == by_libtorch[kind].strides());
      CHECK(out.scalar_type() == dtype);
      ++kind;
    }
  }
}

TEST_CASE("grouped matmuls on the device multiply each group, and repeat their bits", "[gpu]") {
  REMATCH_NEEDS_GPU();
  use_grouped_mm_on_device();
  const at::NoGradGuard no_grad;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const Operands& pair : operands(dtype)) {
      CAPTURE(pair.a.dim(), pair.b.dim(), dtype);
      const at::Tensor out = at::_grouped_mm(pair.a, pair.b, ends());
      const at::Tensor expected = product_of_each_group(pair, out);
      const double tolerance = dtype == at::kFloat ? 1e-4 : 3e-2;
      CHECK(at::allclose(out, expected, tolerance, tolerance));
      CHECK(at::equal(out, at::_grouped_mm(pair.a, pair.b, ends())));
    }
  }
}

}  // namespace
}  // namespace rematch
