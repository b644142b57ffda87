// Records of a point's steps: the bits of each step, how they compare with the reference's bits,
// and whether the executed ops match the plan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"

namespace rematch {

// One training step. Bits are stored as hex strings, so a comparison does not depend on how numbers
// are printed.
struct StepRecord {
  std::optional<double> loss;      // absent if not finite; loss_bits holds the exact value
  std::string loss_bits;           // "0x40490fdb"
  std::string gradient_norm_bits;  // an empty string means not recorded
  std::string parameter_hash;      // hash of parameters and buffers after the step
  std::string generator_hash;
  std::map<std::string, std::string> gradient_hashes;  // by parameter; empty if not recorded
  bool operator==(const StepRecord&) const = default;
};

template <RecordOf<StepRecord> Step, class Visit>
void visit_fields(Step& step, Visit visit) {
  visit("loss", step.loss);
  visit("loss_bits", step.loss_bits);
  visit({"gradient_norm_bits", kNullIfEmpty}, step.gradient_norm_bits);
  visit({"parameter_hash", kNullIfEmpty}, step.parameter_hash);
  visit({"generator_hash", kNullIfEmpty}, step.generator_hash);
  visit("gradient_hashes", step.gradient_hashes);
}

// Throws FormatError if the loss and its bits disagree.
void read_value(const JsonField& field, StepRecord& step);

// Returns the number that recorded bits represent. For example "0x3fc00000" is 1.5. Eight hex
// digits are a float32, sixteen a float64. Infinities and NaNs are returned unchanged. Absent if
// the text is not a number's bits.
std::optional<double> number_of_bits(std::string_view bits);

// Compares a point with its reference, step by step. A member is absent if it could not be
// compared.
struct ParityRecord {
  std::string reference;  // the reference's policy, such as "none"
  // why the comparison did not use the requested reference; empty if it did
  std::string reference_reason;
  int compared_steps = 0;
  std::optional<bool> loss_bits_equal;
  std::optional<bool> gradient_bits_equal;
  std::optional<bool> parameter_hash_equal;
  std::optional<bool> generator_hash_equal;
  std::optional<int> first_different_step;  // index of the step; the first step is 0
  std::string first_different_tensor;       // name of a tensor, such as "loss" or
                                            // "blocks.0.attention.wq.weight"
  // whether every parameter got a nonzero gradient in the first step
  std::optional<bool> every_parameter_has_gradient;
  std::string first_parameter_without_gradient;
  // Whether a replayed CUDA graph gave the loss, parameters and generator states of the same step
  // run op by op. Absent without --cuda-graph.
  std::optional<bool> replay_bits_equal;
  bool operator==(const ParityRecord&) const = default;
};

template <RecordOf<ParityRecord> Parity, class Visit>
void visit_fields(Parity& parity, Visit visit) {
  visit({"reference", kColumn, "parity_reference"}, parity.reference);
  visit({"reference_reason", kNullIfEmpty}, parity.reference_reason);
  visit("compared_steps", parity.compared_steps);
  visit({"loss_bits_equal", kColumn}, parity.loss_bits_equal);
  visit({"gradient_bits_equal", kColumn}, parity.gradient_bits_equal);
  visit("parameter_hash_equal", parity.parameter_hash_equal);
  visit("generator_hash_equal", parity.generator_hash_equal);
  visit("first_different_step", parity.first_different_step);
  visit({"first_different_tensor", kNullIfEmpty}, parity.first_different_tensor);
  visit("every_parameter_has_gradient", parity.every_parameter_has_gradient);
  visit({"first_parameter_without_gradient", kNullIfEmpty},
        parity.first_parameter_without_gradient);
  visit({"replay_bits_equal", kLater | kOmitIfEmpty}, parity.replay_bits_equal);
}

// Returns whether some compared bits differ.
inline bool has_other_bits(const ParityRecord& parity) {
  return parity.loss_bits_equal == false || parity.gradient_bits_equal == false ||
         parity.parameter_hash_equal == false || parity.generator_hash_equal == false ||
         parity.replay_bits_equal == false;
}

// Whether the plan equals the plan of policy `none` or `full`, and whether the run executed the ops
// that the plan predicts.
struct EffectRecord {
  std::string same_as;    // "none" or "full" if the plan equals the plan of that policy; else empty
  bool intended = false;  // true if the policy's name implies that the plans are equal
  std::optional<bool> counts_equal_prediction;
  std::string detail;  // the first difference, in one line
  // name of a store that may change the bits of kept values, such as "compress8"; empty if the plan
  // uses no such store
  std::string inexact_store;
  bool operator==(const EffectRecord&) const = default;
};

template <RecordOf<EffectRecord> Effect, class Visit>
void visit_fields(Effect& effect, Visit visit) {
  visit({"same_as", kNullIfEmpty}, effect.same_as);
  visit("intended", effect.intended);
  visit({"counts_equal_prediction", kColumn}, effect.counts_equal_prediction);
  visit({"detail", kNullIfEmpty}, effect.detail);
  visit({"inexact_store", kLater | kOmitIfEmpty}, effect.inexact_store);
}

}  // namespace rematch
