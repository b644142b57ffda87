#include "reports/gate/envelope_check.h"

#include <cmath>

#include "reports/gate/check_record.h"
#include "reports/gate/number_text.h"

namespace rematch {
namespace {

constexpr std::size_t kEnvelopeRuns = 3;
constexpr double kFactorOfOneRun = 2;
constexpr double kFactorOfDoubling = 0.2;
// Simulated with equal candidates; Note [The envelope].
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
        std::to_string(reference.runs.size()) + " of at least " + std::to_string(kEnvelopeRuns) +
            " runs of the reference; " +
            (reference.more_runs.empty() ? "measure it with rematch run --repeat-reference"
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
                                   " at any step; one below " + number_text(widest) +
                                   " passes. An equal candidate fails at most " +
                                   number_text(100 * false_alarms) + " % of the time";
  const std::string times = candidate.runs.size() == 1 ? "twice" : number_text(factor) + " times";
  const std::string both = "differs by " + number_text(furthest.difference) + " at most" +
                           among_runs(furthest, candidate) + " from the nearest of " +
                           std::to_string(reference.runs.size()) + " reference runs; allowed is " +
                           number_text(*check.limit) + ", " + times + " what two of them differ by";
  return decide(
      check, furthest.difference <= *check.limit ? GateVerdict::kPass : GateVerdict::kFail, both);
}

}  // namespace rematch
