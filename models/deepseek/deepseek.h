// DeepSeek-V3 as its 16B model has it: latent attention without a query latent; blocks after the
// first few have a mixture of experts, softmax scores on the experts' outputs.
#pragma once

#include <memory>

#include "models/model.h"

namespace rematch {

// Its batch: tokens and targets, int64, [batch * tokens], sequence after sequence.
std::unique_ptr<Model> make_deepseek(const ModelSpec& spec, at::Device device);

}  // namespace rematch
