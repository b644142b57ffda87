#include "reports/gate/loss_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/gate/check_record.h"
#include "reports/statistics/student_t.h"

namespace rematch {
namespace {

constexpr std::size_t kEquivalenceRuns = 4;
constexpr double kEquivalenceTail = 0.05;
// smallest margin, in standard deviations of one run's mean loss
constexpr double kNoiseMargin = 4;
constexpr double kFalseAlarmsOfEquivalence = 0.001;
// significance level of the F test for a larger variance among the candidate's runs
constexpr double kSurelyWider = 0.0001;

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

// Returns the variance of the runs around the mean of their arm.
double variance_of(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

struct RunSpread {
  // standard deviation of a run's mean loss; the margin is a multiple of this value
  double deviation = 0;
  bool candidate_is_wider = false;
};

// Note [Whose spread makes the margin] The margin is computed from the pooled spread of both arms.
// But an outlier among the candidate's runs would widen the margin until the candidate passes. So
// if the candidate's runs vary significantly more than the reference's, only the reference's spread
// counts.
RunSpread spread_of_run(const std::vector<double>& candidate,
                        const std::vector<double>& reference) {
  const double own = variance_of(candidate);
  const double other = variance_of(reference);
  const auto above = static_cast<double>(candidate.size() - 1);
  const auto below = static_cast<double>(reference.size() - 1);
  const double ratio = other > 0 ? own / other : std::numeric_limits<double>::infinity();
  if (own > 0 && variance_ratio_tail(ratio, above, below) < kSurelyWider) {
    return {std::sqrt(other), true};
  }
  return {std::sqrt((above * own + below * other) / (above + below)), false};
}

// All runs of an arm have the same mean, so the difference of the means has no error.
void judge_without_noise(CheckRecord& check) {
  const bool is_within = *check.measured <= *check.limit;
  check.noise->detects =
      (*check.limit == 0 ? "any difference of the mean losses"
                         : "a difference of the mean losses above " + number_text(*check.limit)) +
      std::string(": neither side varies between runs, so --loss bitwise is stricter");
  decide(check, is_within ? GateVerdict::kPass : GateVerdict::kFail,
         "mean losses differ by " + number_text(*check.measured) +
             " and do not vary between runs; allowed is " + number_text(*check.limit));
}

void judge_equivalence(CheckRecord& check, const std::vector<double>& candidate,
                       const std::vector<double>& reference, std::optional<double> margin) {
  const MeanDifference difference = welch_difference(candidate, reference);
  const RunSpread spread = spread_of_run(candidate, reference);
  check.limit = std::max(margin.value_or(0), kNoiseMargin * spread.deviation);
  check.measured = std::abs(difference.difference);
  if (difference.error == 0) return judge_without_noise(check);
  const double half = difference.error * student_t_quantile(kEquivalenceTail, difference.degrees);
  check.noise->detects = "true differences above the margin, " + number_text(*check.limit) +
                         ", which pass at most one time in twenty; smaller differences may pass. "
                         "An equal candidate fails at most " +
                         number_text(100 * kFalseAlarmsOfEquivalence) + " % of the time";
  std::string means = "mean losses differ by " + number_text(*check.measured) + " +- " +
                      number_text(half) + ", margin " + number_text(*check.limit);
  if (spread.candidate_is_wider) means += "; the candidate's runs vary more than the reference's";
  if (*check.measured + half <= *check.limit) {
    decide(check, GateVerdict::kPass, means);
  } else if (*check.measured - half > *check.limit) {
    decide(check, GateVerdict::kFail, means);
  } else {
    decide(check, GateVerdict::kInconclusive, means + "; run more repeats");
  }
}

}  // namespace

CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps) {
  CheckRecord check = loss_check("loss_equivalence", "T2", reference);
  const std::string why = obstacle(candidate, reference);
  if (!why.empty()) return decide(check, GateVerdict::kInconclusive, why);
  if (std::min(candidate.runs.size(), reference.runs.size()) < kEquivalenceRuns) {
    return decide(
        check, GateVerdict::kInconclusive,
        std::to_string(candidate.runs.size()) + " and " + std::to_string(reference.runs.size()) +
            " runs; each arm needs " + std::to_string(kEquivalenceRuns) + ": " +
            (reference.more_runs.empty() ? "rematch run --reference POLICY --repeat-reference 3"
                                         : reference.more_runs));
  }
  const std::size_t steps = reference.runs.front().size();
  const std::size_t half = std::max<std::size_t>(1, steps / 2);
  const std::size_t window = window_steps ? static_cast<std::size_t>(*window_steps) : half;
  if (window < 1 || window > steps) {
    return decide(check, GateVerdict::kInconclusive,
                  "a window of " + std::to_string(window) +
                      " steps is out of range; allowed: 1 to " + std::to_string(steps));
  }
  const WindowedMeans own = windowed_means(candidate, steps, window);
  const WindowedMeans other = windowed_means(reference, steps, window);
  if (!own.finite || !other.finite) {
    return decide(check, GateVerdict::kFail, "a loss is not finite");
  }
  judge_equivalence(check, own.means, other.means, margin);
  return check;
}

}  // namespace rematch
