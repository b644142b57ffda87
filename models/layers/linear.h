// Linear layers and dropout: their parameters and op streams. A linear is `t mm` without bias, `t
// addmm` with; an adapted one has a low-rank adapter beside a frozen weight (LoRA, Hu et al. 2021).
// Dropout is one op, `native_dropout`; it draws from the device's default generator, so a recompute
// must draw from the same state again.
#pragma once

#include <cstdint>
#include <string>

#include "models/layers/parameters.h"

namespace rematch {

// The part of a linear that a rank of a tensor-parallel layout holds: all, its share of the outputs
// (column-parallel), or its share of the inputs (row-parallel). In the last case the ranks' results
// are to be summed: leave() in layers/collectives.h. kShared is all of one whose outputs this
// rank's share of the heads alone reads, so that its gradients are partial. Without tp all are one.
enum class LinearSplit : std::uint8_t { kWhole, kByOutputs, kByInputs, kShared };

struct Linear {
  Weight weight;  // [out, in]
  Weight bias;    // [out], or undefined
};

enum class Bias : bool { kNo, kYes };

// Parameters `name`.weight and, if asked for, `name`.bias, uniform within 1 / sqrt(inputs). The
// widths are the whole linear's.
Linear make_linear(Parameters& parameters, const std::string& name, std::int64_t inputs,
                   std::int64_t outputs, Bias bias, LinearSplit split = LinearSplit::kWhole);

// x is contiguous; of more than two dimensions it is viewed as a matrix.
at::Tensor apply_linear(const Linear& linear, const at::Tensor& x);

// The same of a linear that is split by inputs: the ranks' results are summed, and the bias is
// added once, `mm view all_reduce wait_tensor add`; where tokens are split, by each rank to its
// own, behind `reduce_scatter_tensor`.
at::Tensor apply_and_leave(const Linear& linear, const at::Tensor& x,
                           const TensorParallel& parallel);

struct AdaptedLinear {
  Linear base;
  Weight down;  // [rank, in], or undefined: no adapter
  Weight up;    // [out, rank]
};

// As make_linear without a bias; a rank above 0 adds `name`.adapter.down and .up, which learn. `up`
// does not start at zero, or `down` would get no gradient in the first step.
AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank,
                                  LinearSplit split = LinearSplit::kWhole);

// x weight^T + 2 (x down^T) up^T for a matrix x: `t mm`, and with an adapter `t mm t mm mul add`
// behind it, all in a scope `adapted`. The factor is the paper's alpha / rank with alpha = 2 rank.
at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x);

// The share of elements that the model drops; 0 if the option is off.
double dropout_ratio(const ModelSpec& spec);

// x with a random share `ratio` of its elements set to 0 and the others scaled by 1 / (1 - ratio);
// at 0 x itself, without an op.
at::Tensor dropout(at::Tensor x, double ratio);

}  // namespace rematch
