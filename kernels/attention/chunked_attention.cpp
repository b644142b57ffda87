#include "kernels/attention/chunked_attention.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/sub.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <algorithm>
#include <vector>

#include "kernels/attention/attention_variants.h"
#include "kernels/attention/chunks.h"
#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

using Forward = AttentionForward;
using Backward = AttentionBackward;

// Returns the tokens of consecutive chunks: a view of x_BHSD or x_BHS.
class ChunksOf {
 public:
  ChunksOf(const at::Tensor& q, at::IntArrayRef q_chunks)
      : length_(q.size(2) / static_cast<std::int64_t>(q_chunks.size())) {}

  at::Tensor queries(const at::Tensor& x, const ChunkCall& call) const {
    return x.narrow(2, call.first_query * length_, call.num_queries * length_);
  }
  at::Tensor keys(const at::Tensor& x, const ChunkCall& call) const {
    return x.narrow(2, call.first_key * length_, call.num_keys * length_);
  }

 private:
  std::int64_t length_;
};

// Merges attention to two sets of keys. Both results are normalised by their own sums, so each gets
// its share of the sum over all keys as its weight. Writes to `out` and `logsumexp`.
void merge(const at::Tensor& out, const at::Tensor& logsumexp, const Forward& more) {
  const auto& [more_out, more_logsumexp] = more;
  const at::Tensor sum = at::logaddexp(logsumexp, more_logsumexp);
  out.mul_(at::exp(at::sub(logsumexp, sum)).unsqueeze(-1));
  out.addcmul_(more_out.to(out.scalar_type()), at::exp(at::sub(more_logsumexp, sum)).unsqueeze(-1));
  logsumexp.copy_(sum);
}

// CUDA's kernels read the logsumexp as a contiguous tensor.
at::Tensor logsumexp_of_call(const at::Tensor& rows) {
  return rows.is_cpu() ? rows : rows.contiguous();
}

void check_chunks(const char* op, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  at::IntArrayRef q_chunks, at::IntArrayRef k_chunks) {
  check_attention_inputs(op, q, k, v);
  const auto num_queries = static_cast<std::int64_t>(q_chunks.size());
  const auto num_keys = static_cast<std::int64_t>(k_chunks.size());
  TORCH_CHECK(num_queries > 0 && num_keys > 0 && q.size(2) % num_queries == 0 &&
                  k.size(2) % num_keys == 0 && q.size(2) / num_queries == k.size(2) / num_keys,
              op, ": all chunks must be equally long; found ", num_queries, " chunks of ",
              q.size(2), " queries and ", num_keys, " chunks of ", k.size(2), " keys");
}

// Attends to the keys, and merges the result with that of attention to other keys. `before` may be
// undefined. Several results are merged in float32. The output has dtype `result`.
Forward attend_chunks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const Forward& before, at::IntArrayRef q_chunks, at::IntArrayRef k_chunks,
                      std::optional<double> scale, at::ScalarType result) {
  const at::Tensor out = at::empty_like(q, q.options().dtype(result));
  const at::Tensor logsumexp = empty_logsumexp(q);
  if (q.is_meta()) return {out, logsumexp};
  const ChunksOf chunks(q, q_chunks);
  const at::ScalarType sums = sum_dtype(q.scalar_type());
  const at::Tensor sum = result == sums ? out : at::empty_like(q, q.options().dtype(sums));
  std::int64_t num_queries = 0;  // number of query chunks that have results
  if (std::get<0>(before).defined()) {
    sum.copy_(std::get<0>(before));
    logsumexp.copy_(std::get<1>(before));
    num_queries = static_cast<std::int64_t>(q_chunks.size());
  }
  for (const ChunkCall& call : chunk_calls(q_chunks.vec(), k_chunks.vec())) {
    const Forward more = attend(chunks.queries(q, call), chunks.keys(k, call), chunks.keys(v, call),
                                {call.causal, scale, {}});
    const at::Tensor rows = chunks.queries(sum, call);
    const at::Tensor logsumexp_rows = chunks.queries(logsumexp, call);
    if (call.first_query < num_queries) {
      merge(rows, logsumexp_rows, more);
      continue;
    }
    rows.copy_(std::get<0>(more));
    logsumexp_rows.copy_(std::get<1>(more));
    num_queries = call.first_query + call.num_queries;
  }
  if (!sum.is_same(out)) out.copy_(sum);
  return {out, logsumexp};
}

struct ChunkedAttentionOp {
  static constexpr auto kForward =
      "chunked_attention(Tensor q, Tensor k, Tensor v, int[] q_chunks, int[] k_chunks, "
      "float? scale) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "chunked_attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, int[] q_chunks, int[] k_chunks, float? scale) -> (Tensor, Tensor, Tensor)";

  static Forward forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         at::IntArrayRef q_chunks, at::IntArrayRef k_chunks,
                         std::optional<double> scale) {
    check_chunks("rematch::chunked_attention", q, k, v, q_chunks, k_chunks);
    check_own_keys(q_chunks, k_chunks);
    return attend_chunks(q, k, v, {}, q_chunks, k_chunks, scale, q.scalar_type());
  }

  static Backward backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp,
                           at::IntArrayRef q_chunks, at::IntArrayRef k_chunks,
                           std::optional<double> scale) {
    const at::Tensor grad_q = empty_gradient(q);
    const at::Tensor grad_k = empty_gradient(k);
    const at::Tensor grad_v = empty_gradient(v);
    if (q.is_meta()) return {grad_q, grad_k, grad_v};
    for (const at::Tensor& gradient : {grad_q, grad_k, grad_v}) gradient.zero_();
    const ChunksOf chunks(q, q_chunks);
    // With the logsumexp over all keys, the gradients of the calls add up to the whole gradient.
    for (const ChunkCall& call : chunk_calls(q_chunks.vec(), k_chunks.vec())) {
      const auto [part_q, part_k, part_v] = attend_backward(
          chunks.queries(grad_out, call), chunks.queries(q, call), chunks.keys(k, call),
          chunks.keys(v, call), chunks.queries(out, call),
          logsumexp_of_call(chunks.queries(logsumexp, call)), {call.causal, scale, {}});
      chunks.queries(grad_q, call).add_(part_q);
      chunks.keys(grad_k, call).add_(part_k);
      chunks.keys(grad_v, call).add_(part_v);
    }
    return {grad_q, grad_k, grad_v};
  }

  static Derivative derivative(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               at::IntArrayRef q_chunks, at::IntArrayRef k_chunks,
                               std::optional<double> scale) {
    return {.inputs = {q, k, v},
            .kept = {q, k, v},
            .formula =
                [queries = q_chunks.vec(), keys = k_chunks.vec(), scale](const Saved& saved) {
                  return gradients<ChunkedAttentionOp>(
                      saved.grad, saved.kept[0], saved.kept[1], saved.kept[2], saved.outputs[0],
                      saved.outputs[1], at::IntArrayRef(queries), at::IntArrayRef(keys), scale);
                },
            .reads_first_output = true};
  }

 private:
  static void check_own_keys(at::IntArrayRef q_chunks, at::IntArrayRef k_chunks) {
    for (const std::int64_t chunk : q_chunks) {
      TORCH_CHECK(std::find(k_chunks.begin(), k_chunks.end(), chunk) != k_chunks.end(),
                  "rematch::chunked_attention: the keys must contain chunk ", chunk,
                  " of the queries; found chunks ", k_chunks);
    }
  }
};

constexpr auto kRingStep =
    "ring_attention_step(Tensor q, Tensor k, Tensor v, Tensor? out, Tensor? logsumexp, "
    "int[] q_chunks, int[] k_chunks, float? scale) -> (Tensor, Tensor)";
constexpr auto kRingEnd =
    "ring_attention(Tensor q, Tensor k, Tensor v, Tensor out, Tensor logsumexp, "
    "int[] q_chunks, int[] k_chunks, float? scale) -> (Tensor, Tensor)";

Forward ring_step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const std::optional<at::Tensor>& out, const std::optional<at::Tensor>& logsumexp,
                  at::IntArrayRef q_chunks, at::IntArrayRef k_chunks, std::optional<double> scale) {
  check_chunks("rematch::ring_attention_step", q, k, v, q_chunks, k_chunks);
  const Forward before = {out.value_or(at::Tensor()), logsumexp.value_or(at::Tensor())};
  return attend_chunks(q, k, v, before, q_chunks, k_chunks, scale, sum_dtype(q.scalar_type()));
}

Forward ring_end(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const at::Tensor& out, const at::Tensor& logsumexp, at::IntArrayRef q_chunks,
                 at::IntArrayRef k_chunks, std::optional<double> scale) {
  check_chunks("rematch::ring_attention", q, k, v, q_chunks, k_chunks);
  return attend_chunks(q, k, v, {out, logsumexp}, q_chunks, k_chunks, scale, q.scalar_type());
}

// The ops of a ring have no derivatives of their own: models/layers differentiates the whole ring.
void register_ring(torch::Library& library) {
  library.def(kRingStep);
  library.def(kRingEnd);
  for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::CUDA}) {
    library.impl("ring_attention_step", torch::dispatch(key, TORCH_FN(ring_step)));
    library.impl("ring_attention", torch::dispatch(key, TORCH_FN(ring_end)));
  }
  for (const char* name : {"ring_attention_step", "ring_attention"}) {
    library.impl(name, torch::dispatch(c10::DispatchKey::Autograd,
                                       torch::autograd::autogradNotImplementedFallback()));
  }
}

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  register_op<ChunkedAttentionOp>(library);
  register_ring(library);
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch {

std::tuple<at::Tensor, at::Tensor> chunked_attention(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v, at::IntArrayRef q_chunks,
                                                     at::IntArrayRef k_chunks,
                                                     std::optional<double> scale) {
  return kernels::call<kernels::ChunkedAttentionOp>(q, k, v, q_chunks, k_chunks, scale);
}

std::tuple<at::Tensor, at::Tensor> ring_attention_step(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const RingResult& before,
                                                       at::IntArrayRef q_chunks,
                                                       at::IntArrayRef k_chunks) {
  using Signature = decltype(kernels::ring_step);
  static const auto op = kernels::handle<Signature>(kernels::kRingStep);
  const auto optional = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  return op.call(q, k, v, optional(before.out), optional(before.logsumexp), q_chunks, k_chunks,
                 std::nullopt);
}

std::tuple<at::Tensor, at::Tensor> ring_attention(const at::Tensor& q, const at::Tensor& k,
                                                  const at::Tensor& v, const RingResult& before,
                                                  at::IntArrayRef q_chunks,
                                                  at::IntArrayRef k_chunks) {
  using Signature = decltype(kernels::ring_end);
  static const auto op = kernels::handle<Signature>(kernels::kRingEnd);
  return op.call(q, k, v, before.out, before.logsumexp, q_chunks, k_chunks, std::nullopt);
}

std::vector<at::Tensor> chunked_attention_gradients(const at::Tensor& grad_out, const at::Tensor& q,
                                                    const at::Tensor& k, const at::Tensor& v,
                                                    const RingResult& result,
                                                    at::IntArrayRef q_chunks,
                                                    at::IntArrayRef k_chunks) {
  return kernels::gradients<kernels::ChunkedAttentionOp>(
      grad_out, q, k, v, result.out, result.logsumexp, q_chunks, k_chunks, std::optional<double>());
}

}  // namespace rematch
