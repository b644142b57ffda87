#include "reports/gate/bitwise_check.h"

#include <algorithm>

#include "reports/compare/step_bits.h"
#include "reports/gate/check_record.h"

namespace rematch {
namespace {

// A line on what T0 compares and a step lacks; empty if it lacks nothing.
std::string unrecorded(const LossArm& arm) {
  for (const Steps& run : arm.runs) {
    for (std::size_t step = 0; step < run.size(); ++step) {
      for (const RecordedBits& recorded : kRecordedBits) {
        if (!(run[step].*recorded.bits).empty()) continue;
        return std::string("no bits of the ") + recorded.name + " were recorded at step " +
               std::to_string(step) + " of " + arm.policy;
      }
    }
  }
  return "";
}

std::string at(const BitDifference& difference) {
  return "step " + std::to_string(difference.step) + " in " + difference.tensor;
}

}  // namespace

std::optional<BitDifference> first_difference(const Steps& left, const Steps& right) {
  for (std::size_t step = 0; step < std::min(left.size(), right.size()); ++step) {
    const std::string tensor = first_different_tensor(left[step], right[step]);
    if (!tensor.empty()) return BitDifference{static_cast<int>(step), tensor};
  }
  return std::nullopt;
}

CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference) {
  CheckRecord check = loss_check("loss_bitwise", "T0", reference);
  check.noise->detects = "any other bit of a loss, a gradient norm, a parameter or a generator";
  for (std::size_t run = 1; run < reference.runs.size(); ++run) {
    const auto own = first_difference(reference.runs[run], reference.runs.front());
    if (!own) continue;
    return decide(check, GateVerdict::kInconclusive,
                  "refused: run " + std::to_string(run + 1) +
                      " of the reference differs from its "
                      "first at " +
                      at(*own) + "; use --loss envelope");
  }
  const std::string why = obstacle(candidate, reference);
  for (std::size_t run = 0; run < candidate.runs.size() && !reference.runs.empty(); ++run) {
    const auto difference = first_difference(candidate.runs[run], reference.runs.front());
    if (!difference) continue;
    check.first_different_step = difference->step;
    check.first_different_tensor = difference->tensor;
    const std::string place = at(*difference) + in_repeat(run);
    const bool may_vary = !reference.deterministic && reference.runs.size() < 2;
    if (may_vary) {
      return decide(
          check, GateVerdict::kInconclusive,
          "differs at " + place + ", and the reference is neither deterministic nor repeated");
    }
    return decide(check, GateVerdict::kFail, "first differs at " + place);
  }
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  for (const LossArm* arm : {&candidate, &reference}) {
    const std::string lacking = unrecorded(*arm);
    if (!lacking.empty()) return decide(check, GateVerdict::kInconclusive, lacking);
  }
  return decide(check, GateVerdict::kPass,
                "equal bits over " + std::to_string(reference.runs.front().size()) + " steps");
}

}  // namespace rematch
