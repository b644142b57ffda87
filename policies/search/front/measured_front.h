// Chooses which points of a front to run, and evaluates the runs. Calibrates step times on three
// anchors, and computes the errors of the predictions. Finds points that lost to another point, and
// computes hypervolumes of the front and of each baseline. Does not run anything.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/search/front/front.h"
#include "policies/search/front/hypervolume.h"

namespace rematch {

inline constexpr int kMinMeasured = 3;  // the three anchors are always measured

// Note [Which points are run] First come three anchors: both ends of the front and its knee. If the
// knee is an end, the middle takes its place. Calibration makes the prediction exact near the
// anchors, and its error grows with the distance from them. The next points are then added one by
// one. The point with the largest product of contribution and uncertainty comes next. The
// contribution is the area that the point adds to the hypervolume of the chosen points. The
// uncertainty is the distance from the point's predicted step time to the nearest step time of a
// chosen point.
inline constexpr const char* kChoiceRule =
    "both ends and the knee; then, one by one, the point with the largest product of the area that "
    "it adds and the distance of its predicted step time from the nearest chosen point";

// Returns the ascending indices of the anchors. A front with fewer than three points has fewer
// anchors.
std::vector<std::size_t> choose_anchors(const std::vector<PlanePoint>& front);

// Returns ascending indices of at most `count` points, including the anchors.
std::vector<std::size_t> choose_measured(const std::vector<PlanePoint>& front, std::size_t count);

// Fits a line by least squares. Predictions that differ by less than 5 % do not determine a slope.
// In this case, or if the slope would be negative, the returned line has no offset and only scales
// times. The lists must have equal length and must not be empty.
StepCalibration calibrate(const std::vector<double>& predicted_ns,
                          const std::vector<double>& measured_ns);

// Returns the name of a policy without its arguments: "nth_first" for "nth_first(2)".
std::string family_of(const std::string& policy);

// Computes the predicted hypervolumes of the front and of every family, below a common reference
// point.
FrontMeasurement weigh_prediction(const Front& front);

// Computes calibrated times, errors and hypervolumes from the measured figures of the front's
// points and baselines. Marks points that lost to another point. The points must already hold their
// measured statuses, peaks and step times.
void weigh_measurement(Front& front, const std::vector<std::size_t>& anchors,
                       std::optional<std::array<double, 2>> control_interval);

}  // namespace rematch
