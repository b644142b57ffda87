#include "kernels/attention/chunked_attention.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <numeric>

#include "kernels/attention/attention.h"
#include "tests/kernels/composed_attention.h"
#include "tests/kernels/op_checks.h"
#include "tests/support/catch.h"

namespace rematch::testing {
namespace {

using Chunks = std::vector<std::int64_t>;

Chunks all_chunks(std::int64_t count) {
  Chunks chunks(count);
  std::iota(chunks.begin(), chunks.end(), 0);
  return chunks;
}

// Makes x_BHSD from a tensor [batch, tokens, heads, head_dim], as the models do.
at::Tensor chunk_input(std::int64_t batch, std::int64_t heads, std::int64_t tokens,
                       std::int64_t dim) {
  return random({batch, tokens, heads, dim}).transpose(1, 2).detach().requires_grad_(true);
}

// Hides keys that come after a query in the sequence.
at::Tensor mask_of(const Chunks& queries, const Chunks& keys, std::int64_t length) {
  const auto place = [length](const Chunks& chunks, std::int64_t token) {
    return chunks.at(token / length) * length + token % length;
  };
  const auto num_queries = static_cast<std::int64_t>(queries.size()) * length;
  const auto num_keys = static_cast<std::int64_t>(keys.size()) * length;
  at::Tensor mask = at::zeros({num_queries, num_keys}, at::kDouble);
  for (std::int64_t q = 0; q < num_queries; ++q) {
    for (std::int64_t k = 0; k < num_keys; ++k) {
      if (place(keys, k) > place(queries, q)) {
        mask[q][k] = -std::numeric_limits<double>::infinity();
      }
    }
  }
  return mask;
}

OpCase op_case(const Chunks& queries, const Chunks& keys, std::int64_t length,
               std::optional<double> scale) {
  const auto num_queries = static_cast<std::int64_t>(queries.size()) * length;
  const auto num_keys = static_cast<std::int64_t>(keys.size()) * length;
  return {"chunked_attention",
          [=](const Tensors& inputs) {
            return std::get<0>(
                chunked_attention(inputs[0], inputs[1], inputs[2], queries, keys, scale));
          },
          [=](const Tensors& inputs) {
            return composed_attention(inputs[0], inputs[1], inputs[2],
                                      mask_of(queries, keys, length), scale);
          },
          {chunk_input(2, 4, num_queries, 10), chunk_input(2, 2, num_keys, 10),
           chunk_input(2, 2, num_keys, 10)},
          /*saved_before=*/3,
          /*saved_after=*/2,
          /*same_bits_for_any_threads=*/false};
}

void check_ranks() {
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    check_op(
        op_case({rank, 5 - rank}, all_chunks(6), 5, rank == 1 ? std::optional(0.4) : std::nullopt));
  }
  check_op(op_case({2, 0, 3}, {3, 1, 0, 2}, 4, std::nullopt));
}

}  // namespace

TEST_CASE("attention between chunks satisfies the checks of fused ops") { check_ranks(); }

TEST_CASE("attention between chunks composed from ATen ops satisfies the checks of fused ops") {
  const WithBackend math(AttentionBackend::kMath);
  check_ranks();
}

// Attention of a whole sequence is cut into chunks and put together again.
TEST_CASE("ranks with pairs of chunks compute causal attention of the whole sequence") {
  constexpr std::int64_t kRanks = 4, kLength = 6, kTokens = 2 * kRanks * kLength;
  const at::Tensor q = chunk_input(2, 4, kTokens, 8), k = chunk_input(2, 2, kTokens, 8),
                   v = chunk_input(2, 2, kTokens, 8);
  const auto [out, logsumexp] = attention(q, k, v, /*causal=*/true);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const Chunks own = {rank, 2 * kRanks - 1 - rank};
    const auto rows_of = [&](const at::Tensor& x) {
      return at::cat(
          {x.narrow(2, own[0] * kLength, kLength), x.narrow(2, own[1] * kLength, kLength)}, 2);
    };
    const auto found = chunked_attention(rows_of(q), k, v, own, all_chunks(2 * kRanks));
    CHECK(at::allclose(std::get<0>(found), rows_of(out), 1e-12, 1e-12));
    CHECK(at::allclose(std::get<1>(found), rows_of(logsumexp), 1e-12, 1e-12));
  }
}

// Each rank of a ring attends to one rank's keys after the other. The gradients of all ranks add up
// to those of the whole sequence.
TEST_CASE("the steps of a ring compute attention and gradients of the whole sequence") {
  constexpr std::int64_t kRanks = 3, kLength = 5, kTokens = 2 * kRanks * kLength;
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    CAPTURE(dtype);
    const auto leaf = [&](std::int64_t heads) {
      return chunk_input(2, heads, kTokens, 8).detach().to(dtype).requires_grad_(true);
    };
    const at::Tensor q = leaf(4), k = leaf(2), v = leaf(2);
    const auto [out, logsumexp] = attention(q, k, v, /*causal=*/true);
    const at::Tensor grad_out = at::randn_like(out);
    out.backward(grad_out);
    const double tolerance = dtype == at::kDouble ? 1e-12 : dtype == at::kFloat ? 1e-5 : 3e-2;
    const auto rows_of = [&](const at::Tensor& x, const Chunks& chunks) {
      return at::cat(
          {x.narrow(2, chunks[0] * kLength, kLength), x.narrow(2, chunks[1] * kLength, kLength)},
          2);
    };
    const auto near = [&](const at::Tensor& one, const at::Tensor& other) {
      return at::allclose(one.to(at::kDouble), other.to(at::kDouble), tolerance, tolerance);
    };
    const auto chunks_of = [](std::int64_t rank) { return Chunks{rank, 2 * kRanks - 1 - rank}; };
    at::Tensor grad_k = at::zeros_like(k.detach()).to(at::kDouble);
    at::Tensor grad_v = grad_k.clone();
    const at::NoGradGuard no_grad;
    for (std::int64_t rank = 0; rank < kRanks; ++rank) {
      CAPTURE(rank);
      const Chunks own = chunks_of(rank);
      const at::Tensor own_q = rows_of(q, own);
      RingResult result;
      for (std::int64_t step = 0; step < kRanks; ++step) {
        const Chunks keys = chunks_of((rank + kRanks - step) % kRanks);
        const at::Tensor own_k = rows_of(k, keys), own_v = rows_of(v, keys);
        const bool is_last = step + 1 == kRanks;
        std::tie(result.out, result.logsumexp) =
            is_last ? ring_attention(own_q, own_k, own_v, result, own, keys)
                    : ring_attention_step(own_q, own_k, own_v, result, own, keys);
        CHECK(result.out.scalar_type() == (is_last || dtype == at::kDouble ? dtype : at::kFloat));
      }
      CHECK(near(result.out, rows_of(out, own)));
      CHECK(near(result.logsumexp, rows_of(logsumexp, own)));
      at::Tensor grad_q = at::zeros_like(own_q).to(at::kDouble);
      for (std::int64_t other = 0; other < kRanks; ++other) {
        const Chunks keys = chunks_of(other);
        const std::vector<at::Tensor> parts = chunked_attention_gradients(
            rows_of(grad_out, own), own_q, rows_of(k, keys), rows_of(v, keys), result, own, keys);
        grad_q.add_(parts[0]);
        for (std::int64_t half = 0; half < 2; ++half) {
          const std::int64_t begin = keys[half] * kLength;
          grad_k.narrow(2, begin, kLength).add_(parts[1].narrow(2, half * kLength, kLength));
          grad_v.narrow(2, begin, kLength).add_(parts[2].narrow(2, half * kLength, kLength));
        }
      }
      CHECK(near(grad_q, rows_of(q.grad(), own)));
    }
    CHECK(near(grad_k, k.grad()));
    CHECK(near(grad_v, v.grad()));
  }
}

TEST_CASE("chunks that do not fit are rejected with the numbers") {
  const at::Tensor q = at::randn({1, 4, 8, 16}), k = at::randn({1, 2, 16, 16});
  CHECK_THROWS_WITH(chunked_attention(q, k, k, {0, 1, 2}, {0, 1, 2, 3}),
                    Catch::Contains("3 chunks of 8 queries and 4 chunks of 16 keys"));
  CHECK_THROWS_WITH(chunked_attention(q, k, k, {0, 3}, {0, 1}),
                    Catch::Contains("all chunks must be equally long"));
  CHECK_THROWS_WITH(chunked_attention(q, k, k, {0, 4}, {0, 1, 2, 3}),
                    Catch::Contains("must contain chunk 4 of the queries"));
}

}  // namespace rematch::testing
