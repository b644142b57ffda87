// Simple, slow language models in double. They are the reference for loss and gradients of the real
// models.
#pragma once

#include <map>
#include <string>

#include "models/model.h"

namespace rematch {

// Returns the loss of the spec's model with these parameters, given by name.
at::Tensor plain_language_loss(const ModelSpec& spec,
                               const std::map<std::string, at::Tensor>& parameters,
                               const Batch& batch);

// Compares the loss and every gradient of the model on its first batch with plain_language_loss.
void check_against_plain_language(const ModelSpec& spec);

}  // namespace rematch
