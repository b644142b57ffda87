#include "reports/gate/parity_check.h"

#include "reports/compare/step_bits.h"
#include "reports/gate/check_record.h"

namespace rematch {

std::optional<CheckRecord> check_proof(const PointRecord& point) {
  if (point.status != PointStatus::kOk) return std::nullopt;  // which fails, proof or not
  const auto& parity = point.parity;
  if (!parity || !parity->every_parameter_has_gradient) {
    return decided("gradients", GateVerdict::kInconclusive,
                   "no proof: it is not recorded whether every parameter got a gradient");
  }
  if (*parity->every_parameter_has_gradient) return std::nullopt;
  return decided(
      "gradients", GateVerdict::kInconclusive,
      "no proof: parameter " + parity->first_parameter_without_gradient + " got no gradient");
}

void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference) {
  if (check.verdict != GateVerdict::kPass || !claims_other_bits(point)) return;
  const bool is_held_to_it = point.parity->reference == reference.policy;
  const bool is_same_policy = point.policy == reference.policy;
  if (!is_held_to_it && (!is_same_policy || claims_other_bits(reference))) return;
  check.first_different_step = point.parity->first_different_step;
  check.first_different_tensor = point.parity->first_different_tensor;
  decide(check, GateVerdict::kFail,
         "the recorded steps are equal, but by the point's own parity its bits differ from " +
             point.parity->reference + "'s");
}

}  // namespace rematch
