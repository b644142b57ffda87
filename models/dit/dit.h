// Wan 2.1's diffusion transformer: adaLN modulation from the time embedding, RMSNorm on queries and
// keys, 3-D rotary embedding, self and cross attention, biased linears, trained by flow matching.
#pragma once

#include <memory>

#include "models/model.h"

namespace rematch {

// Its batch: latents and noise [batch, channels, frames, 2 height, 2 width], flow time [batch] in
// (0, 1), text [batch, text_tokens, text_dim]; all float32.
std::unique_ptr<Model> make_dit(const ModelSpec& spec, at::Device device);

}  // namespace rematch
