// Which points of a front are worth running, and what their runs say of it: step times calibrated
// on three anchors, errors, losers, hypervolume against each baseline. Runs nothing itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front.h"
#include "policies/search/front/hypervolume.h"

namespace rematch {

inline constexpr int kLeastMeasured = 3;  // the anchors

// Note [Which points are run]
// First three anchors: the ends of the front and its knee (the middle where the knee is an end).
// Calibration makes the prediction exact near them, and what it cannot know grows with the
// distance. So then, one by one, the point with the largest product of
//   contribution: the area that it adds to the hypervolume of those already chosen, and
//   uncertainty: how far its predicted step time is from the nearest one chosen.
inline constexpr const char* kChoiceRule =
    "both ends and the knee; then, one by one, the largest product of the area that a point adds "
    "to those chosen and the distance of its predicted step time from the nearest one chosen";

// Indices of the anchors, ascending. Fewer than three where the front has fewer points.
std::vector<std::size_t> choose_anchors(const std::vector<PlanePoint>& front);

// Indices of at most `count` points, the anchors among them, ascending.
std::vector<std::size_t> choose_measured(const std::vector<PlanePoint>& front, std::size_t count);

// Least squares. Anchors whose predictions lie within a twentieth of each other say too little of
// the slope, so then times are scaled alone; the same where the line would fall. `predicted` and
// `measured` are of equal length, not empty.
StepCalibration calibrate(const std::vector<double>& predicted_ns,
                          const std::vector<double>& measured_ns);

// "nth_first" of "nth_first(2)".
std::string family_of(const std::string& policy);

// The predictions: the front's own hypervolume and every family's, one reference for all.
FrontMeasurement weigh_prediction(const Front& front);

// Fills what follows from the measured figures of the front's points and baselines: calibrated
// times, errors, losers, hypervolume. Their statuses, peaks and step times stand in the points.
void weigh_measurement(Front& front, const std::vector<std::size_t>& anchors,
                       std::optional<std::array<double, 2>> control_interval);

}  // namespace rematch
