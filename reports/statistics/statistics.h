// Robust statistics of step times. Intervals are computed over rounds (one child process each),
// because the steps of one process are not independent. Seconds, nanoseconds and ratios are all
// plain doubles here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/words.h"

namespace rematch {

// [round][step], in the order of measurement.
using Rounds = std::vector<std::vector<double>>;

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// An estimate with its 95 % interval. The interval is absent for a single round.
struct Estimate {
  double value = 0;
  std::optional<Interval> interval;
  bool operator==(const Estimate&) const = default;
};

// The following functions throw std::invalid_argument for an empty list.
double median(std::vector<double> samples);
double median_absolute_deviation(
    // not scaled by 1.4826, unlike an estimate of the standard deviation
    const std::vector<double>& samples);
// Returns a quantile. Interpolates linearly between order statistics. `fraction` lies in [0, 1].
double quantile(std::vector<double> samples, double fraction);

std::string percent(double fraction);  // Returns text such as "12.3 %".

// Returns the median of the medians of the rounds, with an interval that does not extend below 0.
// Every round must have a sample. Samples must not be negative.
Estimate median_over_rounds(const Rounds& rounds);
// Like median_over_rounds(), for samples of either sign, such as differences of times. The interval
// may extend below 0.
Estimate median_difference_over_rounds(const Rounds& rounds);

// Returns the ratio of the medians of two arms that ran separately.
Estimate ratio_of_medians(const Rounds& numerator, const Rounds& denominator);

// Returns the ratio of two arms that took turns. Round i of one arm ran right before or after round
// i of the other arm, so slowdowns that affect both cancel. Throws std::invalid_argument unless
// both arms have the same number of rounds.
Estimate paired_ratio(const Rounds& numerator, const Rounds& denominator);

// Returns how much steps slow down within a round: the last third divided by the first third, minus
// 1, as the median over rounds. Absent if no round has six samples.
std::optional<double> drift(const Rounds& rounds);

enum class Quality : std::uint8_t { kGood, kFewRounds, kNoisy, kDrifting };
template <>
inline constexpr std::array<std::string_view, 4> kWords<Quality> = {"good", "few_rounds", "noisy",
                                                                    "drifting"};

// How reliable the samples are. The verdict is the worst problem found. `reasons` describes every
// problem.
struct QualityReport {
  Quality verdict = Quality::kGood;
  double noise_ratio = 0;  // median over rounds of 1.4826 * MAD / median
  std::optional<double> drift_ratio;
  std::vector<std::string> reasons;
};
QualityReport judge_quality(const Rounds& rounds);

enum class RatioVerdict : std::uint8_t { kFaster, kSlower, kSame, kUnsure };
template <>
inline constexpr std::array<std::string_view, 4> kWords<RatioVerdict> = {"faster", "slower", "same",
                                                                         "unsure"};

// Smaller differences are not reported, because two arms with the same code differ by about as much
// on an idle machine.
inline constexpr double kSmallestDifference = 0.01;

// largest `floor` with which two times can be called the same
inline constexpr double kWidestSame = 0.05;

// Compares the interval with the band from 1 / (1 + floor) to 1 + floor. Returns slower or faster
// if the interval is entirely above or below the band. Returns same if the interval is inside the
// band and `floor` is at most kWidestSame. Otherwise returns unsure.
RatioVerdict judge_ratio(const Estimate& ratio, double floor = kSmallestDifference);

// An A/A control compares two arms with the same code. Returns the largest distance of its interval
// from 1, but at least kSmallestDifference. The result is the `floor` for judge_ratio().
double floor_of_control(const Estimate& control);

}  // namespace rematch
