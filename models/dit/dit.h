// Diffusion transformers for video, Wan 2.1's and LTX-Video's: modulation from the time embedding,
// RMSNorm on queries and keys, 3-D rotary embedding, self and cross attention, biased linears,
// trained by flow matching.
#pragma once

#include <memory>

#include "models/model.h"

namespace rematch {

// Its batch: latents and noise [batch, channels, frames, 2 height, 2 width], flow time [batch] in
// (0, 1), text [batch, text_tokens, text_dim]; all float32.
std::unique_ptr<Model> make_dit(const ModelSpec& spec, at::Device device);

// As make_dit, with latents of [height, width] and one tensor more: which text tokens are words, 1,
// and which padding, 0 [batch, text_tokens].
std::unique_ptr<Model> make_ltx(const ModelSpec& spec, at::Device device);

}  // namespace rematch
