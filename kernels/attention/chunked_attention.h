// Causal attention between chunks of a sequence, as one op on every device:
// rematch::chunked_attention. Under context parallelism a rank has the queries of a few chunks. The
// op runs the kernels of rematch::attention on pairs of chunks, and merges their results.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

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

}  // namespace rematch
