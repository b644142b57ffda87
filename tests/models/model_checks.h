// What must hold of every reference model.
#pragma once

#include <map>
#include <string>

#include "models/model.h"

namespace rematch {

// make_spec's result; fails the test if it is refused.
ModelSpec spec_of(std::string_view preset, const std::map<std::string, std::int64_t>& overrides,
                  std::string_view dtype = "float32");

// After one step on the model's own data the loss is finite and each parameter's gradient is
// finite, of its dtype, and not zero everywhere.
void check_every_parameter_learns(const ModelSpec& spec);

// Forward runs the same ops (see Note [One op, two names]) on CPU and meta, with the same output
// layouts, and so does backward under BackwardAsWithData.
void check_meta_runs_the_same_ops(const ModelSpec& spec);

// Copies of all weights in double, by name: for a reference written apart. Those that learn require
// grad.
std::map<std::string, at::Tensor> parameters_in_double(const Model& model);

// Loss and every gradient of `model` after backward against those of a double reference.
void check_against_reference(Model& model, const Batch& batch, const at::Tensor& reference_loss,
                             const std::map<std::string, at::Tensor>& reference_parameters);

}  // namespace rematch
