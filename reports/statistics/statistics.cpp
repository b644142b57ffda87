#include "reports/statistics/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <stdexcept>

namespace rematch {
namespace {

// standard deviation divided by MAD, for a normal distribution
constexpr double kNormalSpread = 1.4826;
// half width of the interval, relative to the median, above which samples are noisy
constexpr double kNoisyHalfWidth = 0.05;
constexpr double kNoisyWithinRound = 0.10;
constexpr double kDrifting = 0.03;
constexpr std::size_t kEnoughRounds = 3;
constexpr std::size_t kDriftSamples = 6;  // two samples in each third of a round

// Returns the two-sided 95 % quantile of Student's t.
double student_t_95(std::size_t degrees) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                                 2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
                                 2.093,  2.086, 2.080, 2.074, 2.069, 2.064, 2.060};
  if (degrees == 0) throw std::invalid_argument("an interval needs at least two rounds");
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  return 1.960 + 2.5 / static_cast<double>(degrees);
}

std::vector<double> round_medians(const Rounds& rounds) {
  if (rounds.empty()) throw std::invalid_argument("no rounds: nothing was measured");
  std::vector<double> medians;
  medians.reserve(rounds.size());
  for (const std::vector<double>& round : rounds) medians.push_back(median(round));
  return medians;
}

double log_choose(std::size_t from, std::size_t chosen) {
  return std::lgamma(static_cast<double>(from) + 1) - std::lgamma(static_cast<double>(chosen) + 1) -
         std::lgamma(static_cast<double>(from - chosen) + 1);
}

// Returns the probability that at least `wanted` of `trials` draws succeed, if each draw succeeds
// with probability `chance`.
double at_least(std::size_t wanted, std::size_t trials, double chance) {
  if (chance >= 1) return 1;
  if (chance <= 0) return wanted == 0 ? 1 : 0;
  double sum = 0;
  for (std::size_t hits = wanted; hits <= trials; ++hits) {
    sum += std::exp(log_choose(trials, hits) + static_cast<double>(hits) * std::log(chance) +
                    static_cast<double>(trials - hits) * std::log1p(-chance));
  }
  return std::min(1.0, sum);
}

// Note [Exact bootstrap of the median] A bootstrap draws n of the n sorted values with replacement.
// The median of a draw is the mean of its two middle values (one value for odd n). This function
// computes the probability of each pair of middle values, so it needs no random draws and has no
// resampling noise. Calls f(weight, median) for each pair; the weights sum to 1.
template <class Function>
void for_each_resampled_median(const std::vector<double>& sorted, Function f) {
  const std::size_t size = sorted.size();
  const double n = static_cast<double>(size);
  const std::size_t half = (size + 1) / 2;  // rank of the lower middle value
  const auto rank_at_most = [&](std::size_t index) {
    return at_least(half, size, static_cast<double>(index) / n);
  };
  const std::size_t lower_half = size / 2;
  const auto m = static_cast<double>(lower_half);
  const double pairs = size % 2 == 0 ? std::exp(log_choose(size, size / 2)) : 0;
  for (std::size_t low = 0; low < size; ++low) {
    // probability that the lower middle value is sorted[low]
    double both = rank_at_most(low + 1) - rank_at_most(low);
    if (pairs > 0) {
      const double below = std::pow((static_cast<double>(low) + 1) / n, m) -
                           std::pow(static_cast<double>(low) / n, m);
      for (std::size_t high = low + 1; high < size; ++high) {
        const double above = static_cast<double>(size - high);
        const double weight =
            pairs * below * (std::pow(above / n, m) - std::pow((above - 1) / n, m));
        f(weight, (sorted[low] + sorted[high]) / 2);
        both -= weight;
      }
    }
    f(std::max(0.0, both), sorted[low]);
  }
}

// Returns the bootstrap estimate of the standard error of the median. The factor sqrt(n / (n - 1))
// corrects its bias: resamples vary around the mean of the n values, not around the true mean.
double bootstrap_error_of_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double center = median(values);
  double mean = 0;
  double square = 0;
  for_each_resampled_median(values, [&](double weight, double resampled) {
    mean += weight * (resampled - center);
    square += weight * (resampled - center) * (resampled - center);
  });
  const double size = static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, square - mean * mean) * size / (size - 1));
}

Estimate median_with_interval(const std::vector<double>& values) {
  Estimate estimate{.value = median(values), .interval = std::nullopt};
  if (values.size() < 2) return estimate;
  const double half = student_t_95(values.size() - 1) * bootstrap_error_of_median(values);
  estimate.interval = Interval{estimate.value - half, estimate.value + half};
  return estimate;
}

std::vector<double> logarithms(std::vector<double> values) {
  for (double& value : values) {
    if (!(value > 0)) throw std::invalid_argument("a ratio needs times above 0");
    value = std::log(value);
  }
  return values;
}

Estimate exponential(const Estimate& estimate) {
  Estimate ratio{.value = std::exp(estimate.value), .interval = std::nullopt};
  if (estimate.interval) {
    ratio.interval = Interval{std::exp(estimate.interval->low), std::exp(estimate.interval->high)};
  }
  return ratio;
}

double noise_within(const std::vector<double>& round) {
  const double center = median(round);
  return center > 0 ? kNormalSpread * median_absolute_deviation(round) / center : 0;
}

}  // namespace

std::string percent(double fraction) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * fraction);
  return text.data();
}

double quantile(std::vector<double> samples, double fraction) {
  if (samples.empty()) throw std::invalid_argument("no samples: nothing was measured");
  if (!(fraction >= 0 && fraction <= 1)) {
    throw std::invalid_argument("a quantile's fraction must be from 0 to 1");
  }
  const double position = fraction * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto nth = samples.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(samples.begin(), nth, samples.end());
  const double low = *nth;
  if (below + 1 == samples.size()) return low;
  const double high = *std::min_element(nth + 1, samples.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

double median_absolute_deviation(const std::vector<double>& samples) {
  const double center = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - center));
  return median(std::move(deviations));
}

Estimate median_difference_over_rounds(const Rounds& rounds) {
  return median_with_interval(round_medians(rounds));
}

Estimate median_over_rounds(const Rounds& rounds) {
  Estimate estimate = median_difference_over_rounds(rounds);
  // With few rounds, the interval may extend below 0. It is cut off there, because no time is
  // negative.
  if (estimate.interval) estimate.interval->low = std::max(0.0, estimate.interval->low);
  return estimate;
}

Estimate ratio_of_medians(const Rounds& numerator, const Rounds& denominator) {
  const std::vector<double> above = logarithms(round_medians(numerator));
  const std::vector<double> below = logarithms(round_medians(denominator));
  Estimate difference{.value = median(above) - median(below), .interval = std::nullopt};
  const std::size_t fewest = std::min(above.size(), below.size());
  if (fewest >= 2) {
    const double error =
        std::hypot(bootstrap_error_of_median(above), bootstrap_error_of_median(below));
    const double half = student_t_95(fewest - 1) * error;
    difference.interval = Interval{difference.value - half, difference.value + half};
  }
  return exponential(difference);
}

Estimate paired_ratio(const Rounds& numerator, const Rounds& denominator) {
  if (numerator.size() != denominator.size()) {
    throw std::invalid_argument(
        "arms that took turns must have the same number of rounds; these have " +
        std::to_string(numerator.size()) + " and " + std::to_string(denominator.size()));
  }
  std::vector<double> ratios = logarithms(round_medians(numerator));
  const std::vector<double> below = logarithms(round_medians(denominator));
  std::transform(ratios.begin(), ratios.end(), below.begin(), ratios.begin(), std::minus<>());
  return exponential(median_with_interval(ratios));
}

std::optional<double> drift(const Rounds& rounds) {
  std::vector<double> drifts;
  for (const std::vector<double>& round : rounds) {
    if (round.size() < kDriftSamples) continue;
    const auto third = static_cast<std::ptrdiff_t>(round.size() / 3);
    const double first = median({round.begin(), round.begin() + third});
    const double last = median({round.end() - third, round.end()});
    if (first > 0) drifts.push_back(last / first - 1);
  }
  if (drifts.empty()) return std::nullopt;
  return median(std::move(drifts));
}

QualityReport judge_quality(const Rounds& rounds) {
  const Estimate step = median_over_rounds(rounds);
  QualityReport report;
  std::vector<double> noises;
  for (const std::vector<double>& round : rounds) noises.push_back(noise_within(round));
  report.noise_ratio = median(noises);
  report.drift_ratio = drift(rounds);

  const auto find = [&report](Quality finding, std::string reason) {
    report.verdict = std::max(report.verdict, finding);
    report.reasons.push_back(std::move(reason));
  };
  if (rounds.size() < kEnoughRounds) {
    find(Quality::kFewRounds, std::to_string(rounds.size()) + " of at least " +
                                  std::to_string(kEnoughRounds) + " rounds");
  }
  if (report.noise_ratio > kNoisyWithinRound) {
    find(Quality::kNoisy, "steps of one process spread by " + percent(report.noise_ratio));
  }
  if (step.interval && step.value > 0 && rounds.size() >= kEnoughRounds) {
    const double half_width = (step.interval->high - step.interval->low) / 2 / step.value;
    if (half_width > kNoisyHalfWidth) {
      find(Quality::kNoisy, "the median is only known to +- " + percent(half_width));
    }
  }
  if (report.drift_ratio && std::abs(*report.drift_ratio) > kDrifting &&
      std::abs(*report.drift_ratio) > report.noise_ratio) {
    find(Quality::kDrifting,
         "the last third differs from the first by " + percent(*report.drift_ratio));
  }
  return report;
}

RatioVerdict judge_ratio(const Estimate& ratio, double floor) {
  if (!ratio.interval) return RatioVerdict::kUnsure;
  const double high = 1 + floor;
  const double low = 1 / high;
  if (ratio.interval->low > high) return RatioVerdict::kSlower;
  if (ratio.interval->high < low) return RatioVerdict::kFaster;
  const bool is_inside = ratio.interval->low >= low && ratio.interval->high <= high;
  if (is_inside && floor <= kWidestSame) return RatioVerdict::kSame;
  return RatioVerdict::kUnsure;
}

double floor_of_control(const Estimate& control) {
  if (!control.interval) return kSmallestDifference;
  const double above = control.interval->high - 1;
  const double below = 1 / control.interval->low - 1;
  return std::max({kSmallestDifference, above, below});
}

}  // namespace rematch
