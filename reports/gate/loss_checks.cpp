#include "reports/gate/loss_checks.h"

#include <algorithm>
#include <cmath>

#include "reports/compare/step_bits.h"
#include "reports/gate/check_record.h"

namespace rematch {

CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit) {
  CheckRecord check = loss_check("loss_difference", "", reference);
  check.limit = limit;
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  const FurthestRun furthest = furthest_run(candidate, {reference.runs.front()});
  check.measured = furthest.difference;
  const std::string both = "largest difference " + number_text(*check.measured) +
                           among_runs(furthest, candidate) + "; allowed: " + number_text(limit);
  const bool within = *check.measured <= limit;
  const std::optional<double> noise = check.noise->largest_difference;
  if (!noise) {
    return decide(check, within ? GateVerdict::kPass : GateVerdict::kFail,
                  both + "; noise: not measured");
  }
  check.noise->detects = *noise <= limit
                             ? "a difference of more than " + number_text(limit + *noise)
                             : "nothing: the reference's own runs differ by " + number_text(*noise);
  if (*noise <= limit || *check.measured > envelope_factor(candidate.runs.size()) * *noise) {
    return decide(check, within ? GateVerdict::kPass : GateVerdict::kFail, both);
  }
  return decide(check, GateVerdict::kInconclusive,
                both + ", and two runs of the reference differ by " + number_text(*noise));
}

std::optional<CheckRecord> check_finite(const LossArm& candidate) {
  for (std::size_t run = 0; run < candidate.runs.size(); ++run) {
    const std::optional<int> step = first_step_not_finite(candidate.runs[run]);
    if (!step) continue;
    CheckRecord check =
        decided("loss_finite", GateVerdict::kFail,
                "the loss of step " + std::to_string(*step) + in_repeat(run) + " is not finite");
    check.first_different_step = *step;
    check.first_different_tensor = "loss";
    return check;
  }
  return std::nullopt;
}

std::optional<CheckRecord> check_gradients(const LossArm& candidate) {
  for (std::size_t run = 0; run < candidate.runs.size(); ++run) {
    const Steps& steps = candidate.runs[run];
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const std::string fault = gradient_fault(steps[step]);
      if (fault.empty()) continue;
      return decided("gradients", GateVerdict::kFail,
                     "gradients of step " + std::to_string(step) + in_repeat(run) + " " + fault +
                         ", so they cannot be compared");
    }
  }
  return std::nullopt;
}

namespace {

// Tier T0 compares recorded bits. Returns a line about the first missing bits, or "" if none are
// missing.
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
  check.noise->detects = "any different bit in a loss, gradient norm, parameter or generator state";
  for (std::size_t run = 1; run < reference.runs.size(); ++run) {
    const auto own = first_difference(reference.runs[run], reference.runs.front());
    if (!own) continue;
    return decide(check, GateVerdict::kInconclusive,
                  "refused: run " + std::to_string(run + 1) +
                      " of the reference differs from the first run at " + at(*own) +
                      "; use --loss envelope");
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

namespace {

constexpr std::size_t kEnvelopeRuns = 3;
constexpr double kFactorOfOneRun = 2;
constexpr double kFactorOfDoubling = 0.2;
// The rates of false failures with three and with four reference runs, from simulations; see Note
// [The envelope].
constexpr double kFalseAlarmsOfThree = 0.005;
constexpr double kFalseAlarmsOfFour = 0.003;

}  // namespace

double envelope_factor(std::size_t candidate_runs) {
  return kFactorOfOneRun + kFactorOfDoubling * std::log2(static_cast<double>(candidate_runs));
}

CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference) {
  CheckRecord check = loss_check("loss_envelope", "T1", reference);
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  if (reference.runs.size() < kEnvelopeRuns) {
    return decide(
        check, GateVerdict::kInconclusive,
        std::to_string(reference.runs.size()) +
            (reference.runs.size() == 1 ? " reference run" : " reference runs") + "; at least " +
            std::to_string(kEnvelopeRuns) + " are needed; " +
            (reference.more_runs.empty() ? "measure more runs with rematch run --repeat-reference"
                                         : reference.more_runs));
  }
  const double widest = *check.noise->largest_difference;
  const FurthestRun furthest = furthest_run(candidate, reference.runs);
  const double factor = envelope_factor(candidate.runs.size());
  check.measured = furthest.difference;
  check.limit = factor * widest;
  const double false_alarms =
      reference.runs.size() == kEnvelopeRuns ? kFalseAlarmsOfThree : kFalseAlarmsOfFour;
  check.noise->detects = widest == 0
                             ? "any difference: the reference repeats itself exactly"
                             : "a difference of more than " + number_text((1 + factor) * widest) +
                                   " at any step; a difference below " + number_text(widest) +
                                   " passes. An equal candidate fails at most " +
                                   number_text(100 * false_alarms) + " % of the time";
  const std::string times = candidate.runs.size() == 1 ? "twice" : number_text(factor) + " times";
  const std::string both = "largest difference " + number_text(furthest.difference) +
                           among_runs(furthest, candidate) + " from the nearest of " +
                           std::to_string(reference.runs.size()) + " reference runs; allowed is " +
                           number_text(*check.limit) + ", " + times +
                           " the largest difference between two reference runs";
  return decide(
      check, furthest.difference <= *check.limit ? GateVerdict::kPass : GateVerdict::kFail, both);
}

std::optional<CheckRecord> check_proof(const PointRecord& point) {
  // Another check reports points that did not finish.
  if (point.status != PointStatus::kOk) return std::nullopt;
  const auto& parity = point.parity;
  if (!parity || !parity->every_parameter_has_gradient) {
    return decided("gradients", GateVerdict::kInconclusive,
                   "no proof: the report does not say whether every parameter got a gradient");
  }
  if (*parity->every_parameter_has_gradient) return std::nullopt;
  return decided(
      "gradients", GateVerdict::kInconclusive,
      "no proof: parameter " + parity->first_parameter_without_gradient + " got no gradient");
}

void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference) {
  if (check.verdict != GateVerdict::kPass || !claims_wrong_bits(point)) return;
  const bool is_held_to_it = point.parity->reference == reference.policy;
  const bool is_same_policy = point.policy == reference.policy;
  if (!is_held_to_it && (!is_same_policy || claims_wrong_bits(reference))) return;
  check.first_different_step = point.parity->first_different_step;
  check.first_different_tensor = point.parity->first_different_tensor;
  decide(check, GateVerdict::kFail,
         "the recorded steps are equal, but the point's own parity record says that its bits "
         "differ from " +
             point.parity->reference + "'s");
}

}  // namespace rematch
