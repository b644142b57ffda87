// Chooses which points of a front to run, and evaluates the runs. Computes step times calibrated on
// three anchors, errors, points that lost, and the hypervolume against each baseline. Does not run
// anything.
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
// First come three anchors: both ends of the front and its knee, or the middle if the knee is an
// end. Calibration makes the prediction exact near the anchors, and its error grows with the
// distance. The next points are then added one by one. Each has the largest product of
//   contribution: the area that it adds to the hypervolume of the chosen points, and
//   uncertainty: the distance of its predicted step time from the nearest chosen one.
inline constexpr const char* kChoiceRule =
    "both ends and the knee; then, one by one, the largest product of the area that a point adds "
    "to those chosen and the distance of its predicted step time from the nearest one chosen";

// Returns ascending indices of the anchors. There are fewer than three if the front has fewer
// points.
std::vector<std::size_t> choose_anchors(const std::vector<PlanePoint>& front);

// Returns ascending indices of at most `count` points, including the anchors.
std::vector<std::size_t> choose_measured(const std::vector<PlanePoint>& front, std::size_t count);

// Fits a line by least squares. If the predictions lie within a twentieth of each other, they do
// not determine a slope. In this case, or if the line would fall, times are only scaled. The lists
// must have equal length and not be empty.
StepCalibration calibrate(const std::vector<double>& predicted_ns,
                          const std::vector<double>& measured_ns);

// Returns "nth_first" for "nth_first(2)".
std::string family_of(const std::string& policy);

// Evaluates the predictions: the hypervolume of the front and of every family, below one reference
// point.
FrontMeasurement weigh_prediction(const Front& front);

// Derives calibrated times, errors, lost points and hypervolumes from the measured figures of the
// front's points and baselines. The points must already hold their measured statuses, peaks and
// step times.
void weigh_measurement(Front& front, const std::vector<std::size_t>& anchors,
                       std::optional<std::array<double, 2>> control_interval);

}  // namespace rematch
