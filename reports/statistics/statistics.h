// Robust statistics of step times. The unit is the round (one child process). The steps of one
// process share its conditions, so intervals are computed over rounds. No clock, no LibTorch.
// Seconds, nanoseconds and ratios are all plain doubles here.
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

// An estimate with its 95 % interval. The interval is absent for a single round, which does not
// show the spread between rounds.
struct Estimate {
  double value = 0;
  std::optional<Interval> interval;
  bool operator==(const Estimate&) const = default;
};

// The following functions throw std::invalid_argument for an empty list.
double median(std::vector<double> samples);
double median_absolute_deviation(
    const std::vector<double>& samples);  // the plain median of deviations, not scaled by 1.4826
// Returns a quantile. Interpolates linearly between order statistics. `fraction` lies in [0, 1].
double quantile(std::vector<double> samples, double fraction);

std::string percent(double fraction);  // Returns text such as "12.3 %".

// Returns the median of the round medians, with an interval within [0, inf). Every round must have
// a sample. Samples must not be negative.
Estimate median_over_rounds(const Rounds& rounds);
// Like median_over_rounds(), for samples of either sign, such as differences of times. The interval
// may extend below 0.
Estimate median_difference_over_rounds(const Rounds& rounds);

// Returns the ratio of the medians of two arms that ran separately, so that their rounds do not
// correspond.
Estimate ratio_of_medians(const Rounds& numerator, const Rounds& denominator);

// Returns the ratio of two arms that took turns. Round i of one arm ran next to round i of the
// other, so common slowdowns cancel. Throws std::invalid_argument unless both arms have the same
// number of rounds.
Estimate paired_ratio(const Rounds& numerator, const Rounds& denominator);

// Returns the drift: the last third of a round divided by its first third, minus 1, as the median
// over rounds. Absent if no round has six samples.
std::optional<double> drift(const Rounds& rounds);

enum class Quality : std::uint8_t { kGood, kFewRounds, kNoisy, kDrifting };
template <>
inline constexpr std::array<std::string_view, 4> kWords<Quality> = {"good", "few_rounds", "noisy",
                                                                    "drifting"};

// How reliable the samples are. The verdict is the worst finding; every finding has a reason.
struct QualityReport {
  Quality verdict = Quality::kGood;
  double noise_ratio = 0;  // 1.4826 * MAD / median of a round; the median over the rounds
  std::optional<double> drift_ratio;
  std::vector<std::string> reasons;
};
QualityReport judge_quality(const Rounds& rounds);

enum class RatioVerdict : std::uint8_t { kFaster, kSlower, kSame, kUnsure };
template <>
inline constexpr std::array<std::string_view, 4> kWords<RatioVerdict> = {"faster", "slower", "same",
                                                                         "unsure"};

// Differences up to this fraction are not reported, because two arms with the same code differ by
// about as much on an idle machine.
inline constexpr double kSmallestDifference = 0.01;

// If an A/A control differs from 1 by more than this, no two times on that machine can be called
// the same.
inline constexpr double kWidestSame = 0.05;

// Compares the interval with the band from 1 / (1 + floor) to 1 + floor. Returns slower for an
// interval entirely above the band, and faster for an interval entirely below it. Returns same for
// an interval inside the band, if `floor` is at most kWidestSame. Returns unsure for any other
// interval and for a missing interval. An A/A control can raise `floor`.
RatioVerdict judge_ratio(const Estimate& ratio, double floor = kSmallestDifference);

// Returns the floor that an A/A control of the same session requires: the largest distance of the
// control's interval from 1, but at least kSmallestDifference.
double floor_of_control(const Estimate& control);

}  // namespace rematch
