// A linear layer's parameters and its op stream: `t mm` without bias, `t addmm` with.
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

}  // namespace rematch
