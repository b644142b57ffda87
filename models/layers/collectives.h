// Differentiable collectives along one axis of a layout. On an axis of one rank each returns its
// argument, without an op.
//
// Note [Gradients under a layout]
// Ranks whose results are the same hold the same gradients of them; ranks with parts of a result
// hold the gradients of their parts. Each pair of forward and backward below follows from that. A
// parameter that every rank applies to a part of the tokens alone has a partial gradient:
// Parameters::finish_gradients adds those up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/preset/parallel.h"

namespace rematch {

// Sum over the ranks; the gradient as it is. The output of a linear that is split by inputs.
at::Tensor reduce(at::Tensor x, const RankAxis& axis);
// x itself, a view; its gradient is summed over the ranks. The input of linears split by outputs.
at::Tensor copy(at::Tensor x, const RankAxis& axis);

// Along the tokens, those of rank 0 first: rows of a matrix, dimension 1 of a batch of sequences
// [B, S, D].
// All ranks' rows; the gradient is summed, and each rank keeps its rows.
at::Tensor gather(at::Tensor x, const RankAxis& axis);
// Sum over the ranks, of which each keeps its rows; the gradient is gathered.
at::Tensor scatter(at::Tensor x, const RankAxis& axis);
// All ranks' rows, where every rank computes the same of them; it keeps its rows of the gradient.
at::Tensor gather_alike(at::Tensor x, const RankAxis& axis);
// This rank's rows of what all ranks hold alike, copied; the gradient is gathered.
at::Tensor own_rows(at::Tensor x, const RankAxis& axis);
// Sends input_rows[r] rows to rank r and gets output_rows[r] of it; the gradient goes back.
at::Tensor exchange(at::Tensor x, const std::vector<std::int64_t>& output_rows,
                    const std::vector<std::int64_t>& input_rows, const RankAxis& axis);

// Attention's exchange of tokens for heads (Ulysses; Jacobs et al. 2023). From this rank's tokens
// of all heads, [B, S / n, H, E], to all tokens of its heads, [B, S, H / n, E], and back.
at::Tensor tokens_to_heads(at::Tensor x, const RankAxis& axis);
at::Tensor heads_to_tokens(at::Tensor x, const RankAxis& axis);

// Flat shards of parameters, gathered by one collective; their gradients are averaged and shared
// out by one. Without gradients for shards that need none.
std::vector<at::Tensor> gather_shards(const std::vector<at::Tensor>& shards, const RankAxis& axis);

// The borders of a part whose linears are split over `axis`. Where tokens are split too, the part
// works on all ranks' rows and gives each its own.
struct TensorParallel {
  RankAxis axis;
  bool splits_tokens = false;
};
at::Tensor enter(at::Tensor x, const TensorParallel& parallel);
at::Tensor leave(at::Tensor x, const TensorParallel& parallel);

}  // namespace rematch
