#include "reports/gate/loss_checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reports/gate/number_text.h"
#include "reports/statistics/student_t.h"

namespace rematch {
namespace {

constexpr std::size_t kEnvelopeRuns = 3;
constexpr double kEnvelopeFactor = 2;
// Of equal candidates, simulated; Note [The envelope].
constexpr double kFalseAlarmsOfThree = 0.005;
constexpr double kFalseAlarmsOfFour = 0.003;
constexpr double kFalseAlarmsOfEquivalence = 0.001;
constexpr std::size_t kEquivalenceRuns = 4;
constexpr double kEquivalenceTail = 0.05;
constexpr double kNoiseMargin = 4;  // standard deviations of a run

CheckRecord check_of(const std::string& name, const std::string& tier, const LossArm& reference) {
  CheckRecord check;
  check.check = name;
  check.tier = tier;
  NoiseRecord noise;
  noise.reference_runs = static_cast<int>(reference.runs.size());
  noise.largest_difference = largest_difference(reference.runs);
  check.noise = noise;
  return check;
}

CheckRecord& decide(CheckRecord& check, GateVerdict verdict, std::string reason) {
  check.verdict = verdict;
  check.reason = std::move(reason);
  return check;
}

std::optional<int> first_not_finite(const Steps& steps) {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [](const StepRecord& step) { return !step.loss; });
  if (found == steps.end()) return std::nullopt;
  return static_cast<int>(found - steps.begin());
}

std::optional<int> first_without_gradients(const Steps& steps) {
  const auto found = std::find_if(steps.begin(), steps.end(), [](const StepRecord& step) {
    const std::string& bits = step.gradient_norm_bits;
    return !bits.empty() && bits.find_first_not_of('0', bits.find('x') + 1) == std::string::npos;
  });
  if (found == steps.end()) return std::nullopt;
  return static_cast<int>(found - steps.begin());
}

// The first run is the point's own.
std::string of_run(std::size_t run) { return run == 0 ? "" : " in repeat " + std::to_string(run); }

// Why there is nothing to compare over all steps; empty: there is.
std::string obstacle(const LossArm& candidate, const LossArm& reference) {
  if (reference.runs.empty() || reference.runs.front().empty()) {
    return "the reference has no recorded steps";
  }
  for (const Steps& run : reference.runs) {
    if (first_not_finite(run)) return "a loss of the reference is not finite";
  }
  const std::size_t wanted = reference.runs.front().size();
  for (const LossArm* arm : {&candidate, &reference}) {
    for (const Steps& run : arm->runs) {
      if (run.size() >= wanted) continue;
      return "a run of " + arm->policy + " has " + std::to_string(run.size()) + " of " +
             std::to_string(wanted) + " steps; use the same --steps";
    }
  }
  return "";
}

double distance(const Steps& left, const Steps& right) {
  double largest = 0;
  for (std::size_t step = 0; step < std::min(left.size(), right.size()); ++step) {
    if (!left[step].loss || !right[step].loss) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(*left[step].loss - *right[step].loss));
  }
  return largest;
}

struct RecordedBits {
  const char* name;  // of the tensor that differs
  std::string StepRecord::*bits;
};

constexpr std::array kRecordedBits = {
    RecordedBits{"gradient norm", &StepRecord::gradient_norm_bits},
    RecordedBits{"parameters", &StepRecord::parameter_hash},
    RecordedBits{"generator state", &StepRecord::generator_hash}};

// What T0 claims to compare and a step lacks, in a line; empty: nothing.
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

// A gradient whose name is known says more than the norm of all. What one side did not record is no
// difference; nor is it equal.
std::string tensor_of(const StepRecord& left, const StepRecord& right) {
  if (left.loss_bits != right.loss_bits) return "loss";
  for (const auto& [name, hash] : left.gradient_hashes) {
    const auto found = right.gradient_hashes.find(name);
    if (found != right.gradient_hashes.end() && found->second != hash) return name;
  }
  for (const RecordedBits& recorded : kRecordedBits) {
    const std::string& own = left.*recorded.bits;
    const std::string& other = right.*recorded.bits;
    if (!own.empty() && !other.empty() && own != other) return recorded.name;
  }
  return "";
}

struct WindowedMeans {
  std::vector<double> means;
  bool finite = true;
};

WindowedMeans windowed_means(const LossArm& arm, std::size_t num_steps, std::size_t window) {
  WindowedMeans result;
  for (const Steps& run : arm.runs) {
    double sum = 0;
    for (std::size_t step = num_steps - window; step < num_steps; ++step) {
      result.finite = result.finite && run[step].loss.has_value();
      sum += run[step].loss.value_or(0);
    }
    result.means.push_back(sum / static_cast<double>(window));
  }
  return result;
}

// The pooled standard deviation of a run, from both arms' errors of the mean.
double deviation_of_run(const std::vector<double>& left, const std::vector<double>& right) {
  const auto squares = [](const std::vector<double>& values) {
    double mean = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    double sum = 0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return sum;
  };
  const auto degrees = static_cast<double>(left.size() + right.size() - 2);
  return std::sqrt((squares(left) + squares(right)) / degrees);
}

// Every run of an arm has the same mean, so the difference is known exactly and nothing is a matter
// of chance.
void judge_without_noise(CheckRecord& check) {
  const bool is_within = *check.measured <= *check.limit;
  check.noise->detects =
      (*check.limit == 0 ? "any difference of the mean losses"
                         : "a difference of the mean losses above " + number_text(*check.limit)) +
      std::string(": neither side varies from run to run, so --loss bitwise says more");
  decide(check, is_within ? GateVerdict::kPass : GateVerdict::kFail,
         "mean losses differ by " + number_text(*check.measured) + " and do not vary; allowed is " +
             number_text(*check.limit));
}

void judge_equivalence(CheckRecord& check, const std::vector<double>& candidate,
                       const std::vector<double>& reference, std::optional<double> margin) {
  const MeanDifference difference = welch_difference(candidate, reference);
  const double deviation = deviation_of_run(candidate, reference);
  check.limit = std::max(margin.value_or(0), kNoiseMargin * deviation);
  check.measured = std::abs(difference.difference);
  if (deviation == 0) return judge_without_noise(check);
  const double half = difference.error * student_t_quantile(kEquivalenceTail, difference.degrees);
  check.noise->detects = "a true difference of the margin, " + number_text(*check.limit) +
                         ", passes one time in twenty; a smaller one may pass. An equal "
                         "candidate fails at most " +
                         number_text(100 * kFalseAlarmsOfEquivalence) + " % of the time";
  const std::string means = "mean losses differ by " + number_text(*check.measured) + " +- " +
                            number_text(half) + ", margin " + number_text(*check.limit);
  if (*check.measured + half <= *check.limit) {
    decide(check, GateVerdict::kPass, means);
  } else if (*check.measured - half > *check.limit) {
    decide(check, GateVerdict::kFail, means);
  } else {
    decide(check, GateVerdict::kInconclusive, means + "; run more repeats");
  }
}

}  // namespace

std::optional<double> largest_difference(const std::vector<Steps>& runs) {
  if (runs.size() < 2) return std::nullopt;
  double largest = 0;
  for (std::size_t left = 0; left < runs.size(); ++left) {
    for (std::size_t right = left + 1; right < runs.size(); ++right) {
      largest = std::max(largest, distance(runs[left], runs[right]));
    }
  }
  return largest;
}

std::optional<BitDifference> first_difference(const Steps& left, const Steps& right) {
  for (std::size_t step = 0; step < std::min(left.size(), right.size()); ++step) {
    const std::string tensor = tensor_of(left[step], right[step]);
    if (!tensor.empty()) return BitDifference{static_cast<int>(step), tensor};
  }
  return std::nullopt;
}

CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference) {
  CheckRecord check = check_of("loss_bitwise", "T0", reference);
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
    const std::string place = at(*difference) + of_run(run);
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

CheckRecord check_envelope(const LossArm& candidate, const LossArm& reference) {
  CheckRecord check = check_of("loss_envelope", "T1", reference);
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  if (reference.runs.size() < kEnvelopeRuns) {
    return decide(check, GateVerdict::kInconclusive,
                  std::to_string(reference.runs.size()) + " of at least " +
                      std::to_string(kEnvelopeRuns) +
                      " runs of the reference; measure it with rematch run --repeat-reference");
  }
  const double widest = *check.noise->largest_difference;
  double nearest = std::numeric_limits<double>::infinity();
  for (const Steps& run : reference.runs) {
    nearest = std::min(nearest, distance(candidate.runs.front(), run));
  }
  check.measured = nearest;
  check.limit = kEnvelopeFactor * widest;
  const double false_alarms =
      reference.runs.size() == kEnvelopeRuns ? kFalseAlarmsOfThree : kFalseAlarmsOfFour;
  check.noise->detects = widest == 0 ? "any difference: the reference repeats itself exactly"
                                     : "a difference of more than " + number_text(3 * widest) +
                                           " at any step; one below " + number_text(widest) +
                                           " passes. An equal candidate fails at most " +
                                           number_text(100 * false_alarms) + " % of the time";
  const std::string both = "differs by " + number_text(nearest) + " at most from the nearest of " +
                           std::to_string(reference.runs.size()) + " reference runs; allowed is " +
                           number_text(*check.limit) + ", twice what two of them differ by";
  return decide(check, nearest <= *check.limit ? GateVerdict::kPass : GateVerdict::kFail, both);
}

CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps) {
  CheckRecord check = check_of("loss_equivalence", "T2", reference);
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  if (std::min(candidate.runs.size(), reference.runs.size()) < kEquivalenceRuns) {
    return decide(check, GateVerdict::kInconclusive,
                  std::to_string(candidate.runs.size()) + " and " +
                      std::to_string(reference.runs.size()) + " runs; each arm needs " +
                      std::to_string(kEquivalenceRuns) +
                      ": rematch run --reference POLICY --repeat-reference 3");
  }
  const std::size_t steps = reference.runs.front().size();
  const std::size_t half = std::max<std::size_t>(1, steps / 2);
  const std::size_t window = window_steps ? static_cast<std::size_t>(*window_steps) : half;
  if (window < 1 || window > steps) {
    return decide(check, GateVerdict::kInconclusive,
                  "a window of " + std::to_string(window) +
                      " steps is out of range; allowed are 1 to " + std::to_string(steps));
  }
  const WindowedMeans own = windowed_means(candidate, steps, window);
  const WindowedMeans other = windowed_means(reference, steps, window);
  if (!own.finite || !other.finite) {
    return decide(check, GateVerdict::kFail, "a loss is not finite");
  }
  judge_equivalence(check, own.means, other.means, margin);
  return check;
}

CheckRecord check_difference(const LossArm& candidate, const LossArm& reference, double limit) {
  CheckRecord check = check_of("loss_difference", "", reference);
  check.limit = limit;
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  check.measured = distance(candidate.runs.front(), reference.runs.front());
  const std::string both =
      "differs by " + number_text(*check.measured) + " at most; allowed are " + number_text(limit);
  const bool within = *check.measured <= limit;
  const std::optional<double> noise = check.noise->largest_difference;
  if (!noise) {
    return decide(check, within ? GateVerdict::kPass : GateVerdict::kFail,
                  both + "; noise: not measured");
  }
  check.noise->detects = *noise <= limit
                             ? "a difference of more than " + number_text(limit + *noise)
                             : "nothing: the reference itself differs by " + number_text(*noise);
  if (*noise <= limit || *check.measured > kEnvelopeFactor * *noise) {
    return decide(check, within ? GateVerdict::kPass : GateVerdict::kFail, both);
  }
  return decide(check, GateVerdict::kInconclusive,
                both + ", and two runs of the reference differ by " + number_text(*noise));
}

std::optional<CheckRecord> check_finite(const LossArm& candidate) {
  for (std::size_t run = 0; run < candidate.runs.size(); ++run) {
    const std::optional<int> step = first_not_finite(candidate.runs[run]);
    if (!step) continue;
    CheckRecord check;
    check.check = "loss_finite";
    check.first_different_step = *step;
    check.first_different_tensor = "loss";
    return decide(check, GateVerdict::kFail,
                  "the loss of step " + std::to_string(*step) + of_run(run) +
                      " is not finite, whatever it is compared with");
  }
  return std::nullopt;
}

std::optional<CheckRecord> check_gradients(const LossArm& candidate) {
  for (std::size_t run = 0; run < candidate.runs.size(); ++run) {
    const std::optional<int> step = first_without_gradients(candidate.runs[run]);
    if (!step) continue;
    CheckRecord check;
    check.check = "gradients";
    return decide(check, GateVerdict::kFail,
                  "all gradients of step " + std::to_string(*step) + of_run(run) +
                      " are zero, which does not count as equal to anything");
  }
  return std::nullopt;
}

}  // namespace rematch
