// Steps, parity and effect of a point as JSON.
#include <cmath>

#include "policies/trace/json.h"
#include "reports/record/field_value.h"
#include "reports/record/number_bits.h"
#include "reports/record/parts_json.h"

namespace rematch {
namespace {

// A loss stands twice: equality goes by its bits, tolerances and tables by the number.
void require_same_loss(const JsonField& field, const StepRecord& step) {
  const std::optional<double> value = number_of_bits(step.loss_bits);
  if (!value) field.at("loss_bits").fail("are not the bits of a float32 or float64");
  const bool is_same = std::isfinite(*value) ? step.loss == *value : !step.loss;
  if (!is_same) field.at("loss").fail("is not what \"loss_bits\" says; was the file edited?");
}

}  // namespace

Json step_to_json(const StepRecord& step) {
  return {{"loss", to_value(step.loss)},
          {"loss_bits", step.loss_bits},
          {"gradient_norm_bits", text_or_null(step.gradient_norm_bits)},
          {"parameter_hash", text_or_null(step.parameter_hash)},
          {"generator_hash", text_or_null(step.generator_hash)},
          {"gradient_hashes", to_value(step.gradient_hashes)}};
}

StepRecord step_from_json(const JsonField& field) {
  StepRecord step;
  read_member(field, "loss", step.loss);
  read_member(field, "loss_bits", step.loss_bits);
  require_same_loss(field, step);
  read_text(field, "gradient_norm_bits", step.gradient_norm_bits);
  read_text(field, "parameter_hash", step.parameter_hash);
  read_text(field, "generator_hash", step.generator_hash);
  read_member(field, "gradient_hashes", step.gradient_hashes);
  return step;
}

Json parity_to_json(const ParityRecord& parity) {
  return {
      {"reference", parity.reference},
      {"reference_reason", text_or_null(parity.reference_reason)},
      {"compared_steps", parity.compared_steps},
      {"loss_bits_equal", to_value(parity.loss_bits_equal)},
      {"gradient_bits_equal", to_value(parity.gradient_bits_equal)},
      {"parameter_hash_equal", to_value(parity.parameter_hash_equal)},
      {"generator_hash_equal", to_value(parity.generator_hash_equal)},
      {"first_different_step", to_value(parity.first_different_step)},
      {"first_different_tensor", text_or_null(parity.first_different_tensor)},
      {"every_parameter_has_gradient", to_value(parity.every_parameter_has_gradient)},
      {"first_parameter_without_gradient", text_or_null(parity.first_parameter_without_gradient)}};
}

ParityRecord parity_from_json(const JsonField& field) {
  ParityRecord parity;
  read_member(field, "reference", parity.reference);
  read_text(field, "reference_reason", parity.reference_reason);
  read_member(field, "compared_steps", parity.compared_steps);
  read_member(field, "loss_bits_equal", parity.loss_bits_equal);
  read_member(field, "gradient_bits_equal", parity.gradient_bits_equal);
  read_member(field, "parameter_hash_equal", parity.parameter_hash_equal);
  read_member(field, "generator_hash_equal", parity.generator_hash_equal);
  read_member(field, "first_different_step", parity.first_different_step);
  read_text(field, "first_different_tensor", parity.first_different_tensor);
  read_member(field, "every_parameter_has_gradient", parity.every_parameter_has_gradient);
  read_text(field, "first_parameter_without_gradient", parity.first_parameter_without_gradient);
  return parity;
}

Json effect_to_json(const EffectRecord& effect) {
  return {{"same_as", text_or_null(effect.same_as)},
          {"intended", effect.intended},
          {"counts_equal_prediction", to_value(effect.counts_equal_prediction)},
          {"detail", text_or_null(effect.detail)}};
}

EffectRecord effect_from_json(const JsonField& field) {
  EffectRecord effect;
  read_text(field, "same_as", effect.same_as);
  read_member(field, "intended", effect.intended);
  read_member(field, "counts_equal_prediction", effect.counts_equal_prediction);
  read_text(field, "detail", effect.detail);
  return effect;
}

}  // namespace rematch
