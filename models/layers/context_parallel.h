// Context parallelism: each rank has some chunks of every sequence, and attention reads the keys
// and values of all chunks. See Note [Chunks of a sequence] in models/preset/parallel.h.
//
// Note [Ring of keys and values] With `ring`, each rank sends keys and values to the next rank, N-1
// times, and attends to what it has (Liu et al. 2023). Results are merged by their logsumexps.
// Backward sends the keys and values around again, and with them the sum of their gradients, which
// each rank adds to. So a rank never holds the keys and values of all ranks. Without `ring` it
// gathers them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/layers/rotary.h"
#include "models/preset/parallel.h"

namespace rematch {

// Returns the chunks of this rank, by their place in the sequence.
std::vector<std::int64_t> chunks_of_rank(const RankAxis& cp);

// Copies this rank's tokens of a tensor whose dimension `dim` has all tokens of a sequence. Without
// cp returns `x` and runs no op.
at::Tensor take_own_chunks(const at::Tensor& x, std::int64_t dim, const RankAxis& cp);

class ContextParallel {
 public:
  ContextParallel(const ModelSpec& spec, at::Device device);

  bool is_split() const { return axis_.is_split(); }

  // Runs causal attention of this rank's queries to all tokens of their sequences. Returns out_BHSE
  // for q_BSHE and k, v_BSGE. Call it only if is_split().
  at::Tensor attend(at::Tensor q_BSHE, at::Tensor k_BSGE, at::Tensor v_BSGE) const;

 private:
  at::Tensor attend_to_gathered(at::Tensor q, at::Tensor k, at::Tensor v) const;

  RankAxis axis_;
  bool is_ring_ = false;
  std::vector<std::int64_t> own_chunks_, all_chunks_;
  // Gathered chunks are in the order of the ranks. `order_` gives the rows of the gathered chunks
  // sequence by sequence, and `inverse_` is the inverse permutation. Both are int64.
  at::Tensor order_, inverse_;
};

}  // namespace rematch
