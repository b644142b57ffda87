// Causal attention between chunks of a sequence, as one op on every device:
// rematch::chunked_attention. Under context parallelism a rank has the queries of a few chunks. The
// op runs the kernels of rematch::attention on pairs of chunks, and merges their results.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <vector>

namespace rematch {

// Returns out_BHSD and logsumexp_BHS for q_BHSD and k, v_BGTD, as attention() does. The S queries
// consist of equally long chunks, and the T keys of chunks of the same length. `q_chunks` and
// `k_chunks` give the place of each chunk in the sequence. A query chunk attends to all tokens of
// earlier chunks among the keys, and causally to its own chunk, which must be among the keys.
//
// The ops of all ranks have the same sizes, whatever their chunks. Inside the op, temporaries hold
// one call's results: at most the size of the op's results in forward, and of its gradients in
// backward. Throws c10::Error if shapes, dtypes or chunks do not fit.
std::tuple<at::Tensor, at::Tensor> chunked_attention(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v, at::IntArrayRef q_chunks,
                                                     at::IntArrayRef k_chunks,
                                                     std::optional<double> scale = std::nullopt);

// The result of attention to some of the keys. Undefined tensors: no keys yet.
struct RingResult {
  at::Tensor out;        // BHSD
  at::Tensor logsumexp;  // BHS
};

// The ops of ring attention. Each op attends to the chunks of one rank, and merges the result with
// that of the ranks before. A query chunk may have no keys among `k_chunks`, but must have some in
// the first step. ring_attention_step() returns `out` in float32, or float64 for float64 inputs.
// ring_attention(), the last step, returns `out` in q's dtype. Neither has a derivative.
std::tuple<at::Tensor, at::Tensor> ring_attention_step(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const RingResult& before,
                                                       at::IntArrayRef q_chunks,
                                                       at::IntArrayRef k_chunks);
std::tuple<at::Tensor, at::Tensor> ring_attention(const at::Tensor& q, const at::Tensor& k,
                                                  const at::Tensor& v, const RingResult& before,
                                                  at::IntArrayRef q_chunks,
                                                  at::IntArrayRef k_chunks);

// Returns the gradients of q, k and v that come from these keys:
// rematch::chunked_attention_backward. `result` is the result of attention to all keys.
std::vector<at::Tensor> chunked_attention_gradients(const at::Tensor& grad_out, const at::Tensor& q,
                                                    const at::Tensor& k, const at::Tensor& v,
                                                    const RingResult& result,
                                                    at::IntArrayRef q_chunks,
                                                    at::IntArrayRef k_chunks);

}  // namespace rematch
