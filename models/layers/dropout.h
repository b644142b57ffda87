// Dropout as one op on every device: `native_dropout`. It draws from the device's default
// generator, so a recompute must draw from the same state again.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/preset/preset.h"

namespace rematch {

// The share of elements that the model drops; 0 if the option is off.
double dropout_ratio(const ModelSpec& spec);

// x with a random share `ratio` of its elements set to 0 and the others scaled by 1 / (1 - ratio);
// at 0 x itself, without an op.
at::Tensor dropout(at::Tensor x, double ratio);

}  // namespace rematch
