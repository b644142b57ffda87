// Measurements of a front's points. Plain data; absent means not measured.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// Measurements of one point.
struct MeasuredFigures {
  std::string status = "ok";  // as a run's report has it: "oom", "timeout"
  std::string reason;         // empty where status is ok
  std::optional<Bytes> peak;
  std::optional<std::chrono::nanoseconds> step_time;  // median
  std::optional<std::array<std::chrono::nanoseconds, 2>> step_interval;
  // The prediction, calibrated on the anchors: what `step_time` is held against.
  std::optional<std::chrono::nanoseconds> calibrated_step_time;
  bool is_anchor = false;  // calibration has seen its time, so its error is no prediction's
  // The policy of a measured point that is better in one and not worse in the other, in time by
  // more than the A/A interval; empty: none. Such points stay in the front's file.
  std::string lost_to;
};

// Shares of the rectangle below the reference point, as Front::hypervolume.
struct MeasuredFamily {
  std::string family;  // "nth_first": all its arguments together
  double predicted = 0;
  std::optional<double> measured;
  // The same with its times longer by what the A/A control strays: a front below it is behind by
  // more than noise.
  std::optional<double> measured_beyond_noise;
};

// Measurements of a front.
struct FrontMeasurement {
  std::string chosen_by;             // the rule, for people
  std::vector<std::size_t> anchors;  // indices of points
  // measured = offset + slope * predicted, by least squares over the anchors.
  double offset_ns = 0;
  double slope = 1;
  // 95 % interval of the ratio of two arms that ran the same plan by turns.
  std::optional<std::array<double, 2>> control_interval;
  int num_measured = 0;     // points and baselines whose run ended ok
  int num_equal_peaks = 0;  // of them, to the byte
  // Errors of the step times, over all points but the anchors.
  std::optional<double> median_error_ratio;
  std::optional<double> worst_error_ratio;
  // Hypervolumes of the front's own points, without baselines.
  double predicted_hypervolume = 0;
  std::optional<double> measured_hypervolume;
  std::vector<MeasuredFamily> families;

  bool is_behind_in_prediction() const;
  bool is_behind_when_measured() const;
};

}  // namespace rematch
