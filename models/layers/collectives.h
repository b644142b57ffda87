// Differentiable collectives along one axis of a layout. On an axis of one rank each returns its
// argument and runs no op.
//
// Note [Gradients under a layout]
// Ranks that hold the same result hold the same gradient of it. Ranks that hold parts of a result
// hold the gradients of their parts. Each pair of forward and backward below follows from these two
// rules. A parameter that every rank applies only to part of the tokens has a partial gradient;
// Parameters::finish_gradients sums those.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/preset/parallel.h"

namespace rematch {

// Sums over the ranks; passes the gradient on unchanged. For the output of a linear split by
// inputs.
at::Tensor reduce(at::Tensor x, const RankAxis& axis);
// Returns a view of x; sums its gradient over the ranks. For the input of linears split by outputs.
at::Tensor copy(at::Tensor x, const RankAxis& axis);

// The next four work along the tokens, rank 0's first: along the rows of a matrix, or along
// dimension 1 of a batch of sequences [B, S, D].
// Concatenates all ranks' rows. Sums the gradient over the ranks, and each rank keeps its rows.
at::Tensor gather(at::Tensor x, const RankAxis& axis);
// Sums over the ranks, and each rank keeps its rows. Gathers the gradient.
at::Tensor scatter(at::Tensor x, const RankAxis& axis);
// Concatenates all ranks' rows for a computation that every rank repeats. Each rank keeps its rows
// of the gradient, which is the same on all ranks.
at::Tensor gather_alike(at::Tensor x, const RankAxis& axis);
// Copies this rank's rows of a tensor that all ranks hold alike. Gathers the gradient.
at::Tensor own_rows(at::Tensor x, const RankAxis& axis);
// Sends input_rows[r] rows to rank r and receives output_rows[r] rows from it. The gradient takes
// the opposite way.
at::Tensor exchange(at::Tensor x, const std::vector<std::int64_t>& output_rows,
                    const std::vector<std::int64_t>& input_rows, const RankAxis& axis);

// Attention's exchange of tokens for heads (Ulysses; Jacobs et al. 2023). tokens_to_heads turns
// this rank's tokens of all heads, [B, S / n, H, E], into all tokens of its heads, [B, S, H / n,
// E]. heads_to_tokens is the inverse.
at::Tensor tokens_to_heads(at::Tensor x, const RankAxis& axis);
at::Tensor heads_to_tokens(at::Tensor x, const RankAxis& axis);

// Gathers flat shards of parameters with one collective. Another averages the gradients over the
// ranks and scatters them. Shards that need no gradient get none.
std::vector<at::Tensor> gather_shards(const std::vector<at::Tensor>& shards, const RankAxis& axis);

// The boundaries of a part whose linears are split over `axis`. If tokens are split too, enter()
// gathers all ranks' rows and leave() returns each rank's own.
struct TensorParallel {
  RankAxis axis;
  bool splits_tokens = false;
};
at::Tensor enter(at::Tensor x, const TensorParallel& parallel);
at::Tensor leave(at::Tensor x, const TensorParallel& parallel);

}  // namespace rematch
