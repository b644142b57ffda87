// Traces a model for rematch predict. In a build without LibTorch, without_libtorch.cpp implements
// it instead.
#pragma once

#include <cstdint>

#include "models/preset/preset.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "reports/record/step_predictor.h"

namespace rematch {

enum class Sizes : std::uint8_t { kExact, kAsCudaRounds };

// The model has no optimizer_ops if this program cannot run the optimizer.
TracedModel trace_for_prediction(const ModelSpec& spec, OptimizerKind optimizer, Sizes sizes);

}  // namespace rematch
