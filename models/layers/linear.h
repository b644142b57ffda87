// Linear layers and dropout: their parameters and op streams. A linear is `t mm` without bias, `t
// addmm` with; an adapted one has a low-rank adapter beside a frozen weight (LoRA, Hu et al. 2021).
// Dropout is one op, `native_dropout`; it draws from the device's default generator, so a recompute
// must draw from the same state again.
#pragma once

#include <string>

#include "models/layers/parameters.h"

namespace rematch {

struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out], or undefined
};

enum class Bias : bool { kNo, kYes };

// Parameters `name`.weight and, if asked for, `name`.bias, uniform within 1 / sqrt(inputs).
Linear make_linear(Parameters& parameters, const std::string& name, std::int64_t inputs,
                   std::int64_t outputs, Bias bias);

// x is contiguous; of more than two dimensions it is viewed as a matrix.
at::Tensor apply_linear(const Linear& linear, const at::Tensor& x);

struct AdaptedLinear {
  Linear base;
  at::Tensor down;  // [rank, in], or undefined: no adapter
  at::Tensor up;    // [out, rank]
};

// As make_linear without a bias; a rank above 0 adds `name`.adapter.down and .up, which learn. `up`
// does not start at zero, or `down` would get no gradient in the first step.
AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank);

// x weight^T + 2 (x down^T) up^T for a matrix x: `t mm`, and with an adapter `t mm t mm mul add`
// behind it, all in a scope `adapted`. The factor is the paper's alpha / rank with alpha = 2 rank.
at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x);

// The share of elements that the model drops; 0 if the option is off.
double dropout_ratio(const ModelSpec& spec);

// x with a random share `ratio` of its elements set to 0 and the others scaled by 1 / (1 - ratio);
// at 0 x itself, without an op.
at::Tensor dropout(at::Tensor x, double ratio);

}  // namespace rematch
