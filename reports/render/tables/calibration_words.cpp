// Describes how measured points calibrate the predicted step times of a front, and whether the
// calibration is reliable.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "policies/base/format.h"
#include "reports/render/noise.h"
#include "reports/render/tables/front_table.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Returns the anchors that have a time. Anchors are the points that calibrate step times.
std::vector<const FrontPoint*> timed_anchors(const Front& front) {
  std::vector<const FrontPoint*> found;
  for (const std::size_t index : front.measurement->anchors) {
    const auto& measured = front.points[index].measured;
    if (measured && measured->step_time && measured->step_time->count() > 0) {
      found.push_back(&front.points[index]);
    }
  }
  return found;
}

double measured_ns(const FrontPoint& point) {
  return static_cast<double>(point.measured->step_time->count());
}

// Returns the noise of the calibration line, relative to the step time. It is the largest distance
// of an anchor from the line, or of the A/A interval from 1, whichever is larger.
double noise_of_line(const Front& front) {
  double noise = 0;
  for (const FrontPoint* point : timed_anchors(front)) {
    const double line = front.measurement->line.at(static_cast<double>(point->step_time.count()));
    noise = std::max(noise, std::abs(line / measured_ns(*point) - 1));
  }
  if (const auto& control = front.measurement->control_interval) {
    noise = std::max({noise, std::abs((*control)[0] - 1), std::abs((*control)[1] - 1)});
  }
  return noise;
}

// Returns the spread of the anchors' times (the slowest divided by the fastest, minus 1), and the
// number of anchors with a time.
std::pair<double, int> spread_of_anchors(const Front& front) {
  std::vector<double> times;
  for (const FrontPoint* point : timed_anchors(front)) times.push_back(measured_ns(*point));
  if (times.empty()) return {0, 0};
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*most / *least - 1, static_cast<int>(times.size())};
}

// Returns a warning if the slope of the line through the anchors may be noise.
std::string noisy_line_warning(const Front& front) {
  // If noise moves each end of the line by a quarter of the spread, the slope may be wrong by half.
  constexpr double kMaxNoiseOfSpread = 0.25;
  const bool is_line = front.measurement && front.measurement->line.offset_ns != 0;
  if (!is_line) return "";
  const auto [spread, num_anchors] = spread_of_anchors(front);
  const double noise = noise_of_line(front);
  if (noise <= kMaxNoiseOfSpread * spread) return "";
  return "Predicted step times are unreliable: they follow a line through " +
         std::to_string(num_anchors) + " points, whose times differ by " + format_percent(spread) +
         ", and noise alone is " + format_percent(noise) +
         "; measure again on an idle machine, with more rounds.";
}

// Returns a warning if measured step times are far from the sum of the profile's op times.
std::string stale_profile_warning(const FrontRecord& record) {
  // If measured and profiled times differ by a larger factor, the machine was in a different state
  // during the profile.
  constexpr double kStale = 1.5;
  const Front& front = record.front;
  const auto profiled = static_cast<double>(front.points[front.knee].step_time.count());
  const auto step = static_cast<double>(predicted_step(front, front.points[front.knee]).count());
  if (!front.measurement || record.time_source == ProfileSource::kRoofline || profiled <= 0 ||
      (step < kStale * profiled && profiled < kStale * step)) {
    return "";
  }
  return "Measured steps take " + format_fixed(step / profiled, 2) +
         " times the sum of the profile's op times: the profile is stale, or the machine was "
         "busy; profile again on an idle machine.";
}

// Returns text such as " minus 307 ms", or "" for an offset of 0.
std::string offset_words(double offset_ns) {
  if (offset_ns == 0) return "";
  return (offset_ns < 0 ? " minus " : " plus ") +
         format_duration(nanoseconds(std::llround(std::abs(offset_ns))));
}

}  // namespace

std::string calibration_warning(const FrontRecord& record) {
  const std::string of_line = noisy_line_warning(record.front);
  const std::string of_profile = stale_profile_warning(record);
  return of_line + (of_line.empty() || of_profile.empty() ? "" : " ") + of_profile;
}

std::string measurement_words(const FrontMeasurement& measurement) {
  std::string words =
      std::to_string(measurement.num_equal_peaks) + " of " +
      std::to_string(measurement.num_measured) +
      " measured peaks equal the predicted peaks to the byte" +
      (measurement.workspace.value_or(Bytes{}).count > 0
           ? ", without the " + format_bytes(*measurement.workspace) + " of libraries' workspaces"
           : "") +
      ". Step times are predicted as " + format_fixed(measurement.line.slope, 3) +
      " times the profile's" + offset_words(measurement.line.offset_ns) + ", fitted to the " +
      std::to_string(measurement.anchors.size()) + " points that were measured first";
  if (measurement.median_error_ratio) {
    words += "; for the other points the error is " +
             format_percent(*measurement.median_error_ratio) + " in the median and " +
             format_percent(*measurement.worst_error_ratio) + " at worst";
  }
  if (measurement.control_interval) {
    words +=
        "; two timings of the reference (A/A) differ " + stray_words(*measurement.control_interval);
  }
  return words + ".";
}

}  // namespace rematch
