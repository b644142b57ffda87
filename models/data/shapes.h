// Training data for video models: latents of coloured shapes that move at constant speed over a
// torus, and the other inputs of a flow-matching step. All numbers are computed from hashed
// integers; no data is stored.
#pragma once

#include <memory>
#include <vector>

#include "models/model.h"

namespace rematch {

// Batches for a DiT. A patch has e x e latent pixels. All tensors are float32:
//   latents and noise  [batch, channels, frames, height * e, width * e]
//   flow time          [batch]
//   text               [batch, text_tokens, text_dim]: the first three tokens are words for shape,
//                      colour and direction; the other tokens are padding
//   mask               [batch, text_tokens]: 1 for a word, 0 for padding; only for families with
//                      masks_text, such as LTX
std::unique_ptr<DataSource> make_shape_data(const ModelSpec& spec, std::uint64_t seed,
                                            at::Device device);

// Returns the flow-matching loss, over `batches`, of the best predictor that ignores its input and
// outputs one constant per channel. A model with a lower loss must have used its input.
double best_constant_predictor_loss(const std::vector<Batch>& batches);

}  // namespace rematch
