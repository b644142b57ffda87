// Llama 3: pre-RMSNorm blocks with grouped-query attention, rotary embedding and SwiGLU, no
// biases, trained on the next byte with cross-entropy. Frozen first blocks and low-rank adapters
// are options.
#pragma once

#include <memory>

#include "models/model.h"

namespace rematch {

// Its batch: tokens and targets, int64, [batch * tokens], sequence after sequence.
std::unique_ptr<Model> make_llama(const ModelSpec& spec, at::Device device);

}  // namespace rematch
