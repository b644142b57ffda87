// Differentiable collectives along one axis of a layout. On an axis of one rank, each function
// returns its argument and runs no op.
//
// Note [Gradients under a layout]
// If all ranks hold the same result, they hold the same gradient. If each rank holds a part of a
// result, it holds the gradient of this part. The backward functions below follow from these two
// rules. If each rank applies a parameter only to part of the tokens, its gradient of the parameter
// is partial. Parameters::finish_gradients sums partial gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/preset/parallel.h"

namespace rematch {

// Sums x over the ranks. Backward returns the gradient unchanged. Used for the output of a linear
// that is split by inputs.
at::Tensor reduce(at::Tensor x, const RankAxis& axis);
// Returns a view of x. Backward sums the gradient over the ranks. Used for the input of linears
// that are split by outputs.
at::Tensor copy(at::Tensor x, const RankAxis& axis);

// The next four functions concatenate or split tokens over the ranks, in rank order. Tokens are the
// rows of a matrix, or dimension 1 of a batch of sequences [B, S, D]. gather() concatenates all
// ranks' rows. Backward sums the gradient over the ranks and returns this rank's rows of the sum.
at::Tensor gather(at::Tensor x, const RankAxis& axis);
// Sums x over the ranks, and returns this rank's rows of the sum. Backward gathers the gradient.
at::Tensor scatter(at::Tensor x, const RankAxis& axis);
// Concatenates all ranks' rows. Every rank then repeats the same computation and gets the same
// gradient, so backward returns this rank's rows without a sum.
at::Tensor gather_alike(at::Tensor x, const RankAxis& axis);
// Copies this rank's rows of a tensor that is the same on all ranks. Backward gathers the gradient.
at::Tensor own_rows(at::Tensor x, const RankAxis& axis);
// Sends input_rows[r] rows to rank r and receives output_rows[r] rows from it. Backward sends the
// gradient in the opposite direction.
at::Tensor exchange(at::Tensor x, const std::vector<std::int64_t>& output_rows,
                    const std::vector<std::int64_t>& input_rows, const RankAxis& axis);

// Attention's exchange of tokens for heads (Ulysses; Jacobs et al. 2023). tokens_to_heads takes
// this rank's tokens of all heads, [B, S / n, H, E]. It returns all tokens of this rank's heads,
// [B, S, H / n, E]. heads_to_tokens is the inverse.
at::Tensor tokens_to_heads(at::Tensor x, const RankAxis& axis);
at::Tensor heads_to_tokens(at::Tensor x, const RankAxis& axis);

// Gathers flat shards of parameters with one collective. Backward averages the gradients over the
// ranks and scatters the means, also with one collective. Shards without requires_grad get no
// gradient.
std::vector<at::Tensor> gather_shards(const std::vector<at::Tensor>& shards, const RankAxis& axis);

// enter() and leave() come before and after the linears of a block that are split over `axis`. If
// tokens are also split, enter() gathers all ranks' rows, and leave() returns this rank's rows.
struct TensorParallel {
  RankAxis axis;
  bool splits_tokens = false;
};
at::Tensor enter(at::Tensor x, const TensorParallel& parallel);
at::Tensor leave(at::Tensor x, const TensorParallel& parallel);

}  // namespace rematch
