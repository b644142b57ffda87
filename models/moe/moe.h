// Llama 4 style mixture of experts: Llama's blocks, of which every n-th has a mixture in place of
// its feed-forward; sigmoid scores on the experts' inputs.
#pragma once

#include <memory>

#include "models/model.h"

namespace rematch {

// Its batch: tokens and targets, int64, [batch * tokens], sequence after sequence.
std::unique_ptr<Model> make_moe(const ModelSpec& spec, at::Device device);

}  // namespace rematch
