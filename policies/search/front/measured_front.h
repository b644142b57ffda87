// Chooses which points of a front to measure, and evaluates the measurements: calibrated step
// times, errors of the predictions, and hypervolumes of the front and of each family of baselines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front.h"
#include "policies/search/front/hypervolume.h"

namespace rematch {

inline constexpr int kMinMeasured = 3;  // the three anchors are always measured

// Note [Which points are run] The first points are the three anchors: both ends of the front and
// its knee, or the middle if the knee is an end. Calibration uses the anchors, so its error grows
// with the distance from them. Then points are added one by one. The next point has the
// largest product of two numbers: the area that it adds to the hypervolume, and the distance of its
// predicted step time from the nearest chosen point.
inline constexpr const char* kChoiceRule =
    "both ends and the knee; then, one by one, the point with the largest product of the area that "
    "it adds and the distance of its predicted step time from the nearest chosen point";

// Returns the ascending indices of the anchors. A front with fewer than three points has fewer
// anchors.
std::vector<std::size_t> choose_anchors(const std::vector<PlanePoint>& front);

// Returns ascending indices of at most `count` points, including the anchors.
std::vector<std::size_t> choose_measured(const std::vector<PlanePoint>& front, std::size_t count);

// Fits a line by least squares. Returns a line through the origin if the predictions differ by less
// than 5 %, or if the slope would be negative. The lists must have equal length and must not be
// empty.
StepCalibration calibrate(const std::vector<double>& predicted_ns,
                          const std::vector<double>& measured_ns);

// Returns the name of a policy without its arguments: "nth_first" for "nth_first(2)".
std::string family_of(const std::string& policy);

// Computes the predicted hypervolumes of the front and of every family, below a common reference
// point.
FrontMeasurement weigh_prediction(const Front& front);

// Computes the front's calibrated times, errors and hypervolumes from measured points, and sets
// `lost_to`. The points must already contain their measured statuses, peaks and step times.
void weigh_measurement(Front& front, const std::vector<std::size_t>& anchors,
                       std::optional<std::array<double, 2>> control_interval);

}  // namespace rematch
