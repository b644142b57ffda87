// Embeddings with every option, sparse gradients and sparse tensors, gathers and scatters.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

constexpr std::int64_t kRows = 10;
const std::vector<Shape> kTable = {{kRows, kDim}};

at::Tensor tokens() { return indices(kTokens, 4); }

std::vector<Hazard> embeddings() {
  const Shape bag_weights = {kTokens};
  return {
      hazard("embedding with a padding row", kTable,
             [](const at::Tensor& x, const Parts& p) {
               return x * at::embedding(p[0], tokens(), 1).sin();
             }),
      hazard("embedding whose gradient is scaled by frequency", kTable,
             [](const at::Tensor& x, const Parts& p) {
               return x * at::embedding(p[0], tokens(), -1, true).sin();
             }),
      hazard("embedding with a sparse gradient", kTable,
             [](const at::Tensor& x, const Parts& p) {
               return x * at::embedding(p[0], tokens(), -1, false, true).sin();
             }),
      hazard("a frozen table with a bounded norm", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor table = p.buffers[0];
               at::embedding_renorm_(table, tokens(), 0.5, 2);
               return at::mm(x, p[0]) * at::embedding(table, tokens());
             },
             {.buffers = {{kRows, kDim}}}),
      hazard("embedding bags: sum, mean, max", kTable,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor offsets = at::arange(0, kTokens, 2, at::TensorOptions(at::kLong));
               at::Tensor y = x;
               for (const std::int64_t mode : {0, 1, 2}) {
                 const auto bag = at::embedding_bag(p[0], tokens(), offsets, false, mode);
                 y = y + at::repeat_interleave(std::get<0>(bag).sin(), 2, 0);
               }
               return y;
             }),
      hazard("an embedding bag with per-sample weights and a sparse gradient",
             {{kRows, kDim}, bag_weights},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor offsets = at::arange(0, kTokens, 2, at::TensorOptions(at::kLong));
               const auto bag =
                   at::embedding_bag(p[0], tokens(), offsets, false, 0, true, p[1].sin());
               return x + at::repeat_interleave(std::get<0>(bag), 2, 0);
             }),
      hazard("one-hot rows", kTable,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor rows = at::one_hot(tokens(), kRows).to(at::kFloat);
               return x + at::mm(rows, p[0]).sin();
             }),
  };
}

std::vector<Hazard> gathers() {
  return {
      hazard("four ways to gather rows of a parameter", kTable,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor index = tokens().unsqueeze(1).expand({kTokens, kDim});
               return x * at::gather(p[0], 0, index) + p[0].index_select(0, tokens()) +
                      p[0].index({tokens()}) + at::take_along_dim(p[0], index, 0);
             }),
      hazard("take, put and flat indices", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor flat = indices(kTokens * kDim, 11).view({kTokens, kDim});
               return at::take(y, flat).sin() + at::put(y, flat, y * 2, true);
             }),
      hazard("scatter, scatter_add, scatter_reduce", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor index = indices(kTokens * kDim, kTokens).view({kTokens, kDim});
               return at::scatter(y, 0, index, y.sin()) + at::scatter_add(y, 0, index, y.cos()) +
                      at::scatter_reduce(y, 0, index, y, "mean") +
                      at::scatter_reduce(y, 0, index, y.exp(), "prod", false);
             }),
      hazard("index_put, index_copy, index_fill, masked_scatter", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor rows = indices(3, 3);
               at::Tensor z = at::index_put(y, {rows, rows}, y[0].slice(0, 0, 3));
               z = at::index_copy(z, 0, rows, y.slice(0, 3, 6).sin());
               z = at::index_fill(z, 1, rows, 0.5);
               return at::masked_scatter(z, y.gt(0), y.cos()) + at::masked_fill(y, y.lt(0), 0.1);
             }),
      hazard("indices with slices, bools and None", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).view({kTokens, 2, 4});
               const at::Tensor picked = y.index({{}, at::Tensor(), indices(4, 4).flip(0)});
               const at::Tensor chosen = y.index({at::arange(kTokens).lt(3)});
               return picked.reshape({kTokens, kDim}).sin() * chosen.sum();
             }),
      hazard("segment and cumulative sums", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor lengths = at::tensor({2, 4}, at::TensorOptions(at::kLong));
               const at::Tensor sums = at::segment_reduce(y, "sum", lengths);
               return at::repeat_interleave(sums, lengths, 0) + at::cumsum(y, 1) +
                      at::cumprod(y * 0.5 + 1, 0) + at::logcumsumexp(y, 1);
             }),
      hazard("einsum, tensordot, bilinear, kron", {{kDim, kDim}, {kDim, kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::einsum("td,de,tf->tef", {x, p[0], x}).sum(2);
               return y.sin() + at::bilinear(x, y, p[1]) * 0.1 +
                      at::tensordot(x, p[0], {1}, {0}) * at::kron(x[0], x[1]).mean();
             }),
  };
}

std::vector<Hazard> sparse() {
  return {
      hazard("a sparse constant times a dense value", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor mixing = at::eye(kTokens).roll(1, 0).to_sparse();
               return at::_sparse_mm(mixing, at::mm(x, p[0])).sin();
             }),
      hazard("a value converted to sparse and back", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).relu();
               const at::Tensor thin = y.to_sparse();
               return at::mm(thin, p[0]).sin() + (thin * 2).to_dense();
             }),
      hazard("a coalesced sparse tensor built from values", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor where = at::stack({tokens(), indices(kTokens, 3)});
               const at::Tensor thin =
                   at::sparse_coo_tensor(where, y.sum(1).sin(), {kTokens, kDim}).coalesce();
               return y + thin.to_dense();
             }),
      hazard("compressed rows", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor mixing = at::eye(kTokens).roll(1, 0).to_sparse_csr();
               return at::mm(mixing, at::mm(x, p[0]).sin());
             }),
  };
}

}  // namespace

std::vector<Hazard> indexing_hazards() {
  std::vector<Hazard> all = embeddings();
  for (const auto& more : {gathers(), sparse()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace rematch::testing::hazards
