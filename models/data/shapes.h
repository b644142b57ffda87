// Latents of coloured shapes that move at constant speed over a torus, with what a flow-matching
// step needs beside them. Made of hashed integers; nothing is stored.
#pragma once

#include <memory>
#include <vector>

#include "models/model.h"

namespace rematch {

// Batches for a DiT: latents and noise [batch, channels, frames, e height, e width] with e the
// patch's extent, flow time [batch], text [batch, text_tokens, text_dim], all float32. The text's
// first three tokens name shape, colour and direction; the rest is padding. LTX also gets which
// tokens are words, 1 or 0 [batch, text_tokens].
std::unique_ptr<DataSource> make_shape_data(const ModelSpec& spec, std::uint64_t seed,
                                            at::Device device);

// The flow-matching loss over `batches` of the best prediction that is one constant a channel. A
// model that ends below it uses its input.
double best_constant_predictor_loss(const std::vector<Batch>& batches);

}  // namespace rematch
