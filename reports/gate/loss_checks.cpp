#include "reports/gate/loss_checks.h"

#include "reports/compare/step_bits.h"
#include "reports/gate/check_record.h"
#include "reports/gate/envelope_check.h"
#include "reports/gate/number_text.h"

namespace rematch {

CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit) {
  CheckRecord check = loss_check("loss_difference", "", reference);
  check.limit = limit;
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  const FurthestRun furthest = furthest_run(candidate, {reference.runs.front()});
  check.measured = furthest.difference;
  const std::string both = "differs by " + number_text(*check.measured) + " at most" +
                           among_runs(furthest, candidate) + "; allowed are " + number_text(limit);
  const bool within = *check.measured <= limit;
  const std::optional<double> noise = check.noise->largest_difference;
  if (!noise) {
    return decide(check, within ? GateVerdict::kPass : GateVerdict::kFail,
                  both + "; noise: not measured");
  }
  check.noise->detects = *noise <= limit
                             ? "a difference of more than " + number_text(limit + *noise)
                             : "nothing: the reference itself differs by " + number_text(*noise);
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
    CheckRecord check = decided("loss_finite", GateVerdict::kFail,
                                "the loss of step " + std::to_string(*step) + in_repeat(run) +
                                    " is not finite, whatever it is compared with");
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
                         ", which does not count as equal to anything");
    }
  }
  return std::nullopt;
}

}  // namespace rematch
