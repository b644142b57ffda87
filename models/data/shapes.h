// Latents of coloured shapes that move at constant speed over a torus, and the other inputs of a
// flow-matching step. Everything is computed from hashed integers; nothing is stored.
#pragma once

#include <memory>
#include <vector>

#include "models/model.h"

namespace rematch {

// Batches for a DiT, all float32: latents and noise [batch, channels, frames, e height, e width],
// where e is the patch's extent; flow time [batch]; text [batch, text_tokens, text_dim]. The first
// three text tokens name shape, colour and direction; the rest is padding. Families with
// masks_text, such as LTX, also get a mask [batch, text_tokens]: 1 for a word, 0 for padding.
std::unique_ptr<DataSource> make_shape_data(const ModelSpec& spec, std::uint64_t seed,
                                            at::Device device);

// The flow-matching loss over `batches` of the best constant prediction per channel. A model that
// ends below this loss uses its input.
double best_constant_predictor_loss(const std::vector<Batch>& batches);

}  // namespace rematch
