// Checks that every reference model must pass.
#pragma once

#include <map>
#include <string>

#include "models/model.h"

namespace rematch {

// Returns the result of make_spec. Fails the test if the spec is rejected.
ModelSpec spec_of(std::string_view preset, const std::map<std::string, std::int64_t>& overrides,
                  std::string_view dtype = "float32");

// Checks one step on the model's own data. The loss must be finite. Each parameter's gradient must
// be finite, have the parameter's dtype, and contain a value other than 0.
void check_every_parameter_learns(const ModelSpec& spec);

// Checks that forward runs the same ops (see Note [One op, two names]) on CPU and meta, with the
// same output layouts. Checks backward in the same way under BackwardAsWithData.
void check_meta_runs_the_same_ops(const ModelSpec& spec);

// Returns copies of all weights in double, by name, for an independent reference. Trained weights
// require grad.
std::map<std::string, at::Tensor> parameters_in_double(const Model& model);

// Compares the loss and every gradient of `model` after backward with a reference in double.
void check_against_reference(Model& model, const Batch& batch, const at::Tensor& reference_loss,
                             const std::map<std::string, at::Tensor>& reference_parameters);

}  // namespace rematch
