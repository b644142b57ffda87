#include "reports/render/tables/front_measured.h"

#include <array>
#include <cmath>

#include "policies/base/joined.h"
#include "reports/render/format.h"
#include "reports/render/noise.h"
#include "reports/render/tables/cells.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using table::Alignment;
using table::duration_cell;
using table::Grid;
using table::kNotMeasured;

std::string note_of(const MeasuredFigures& figures) {
  if (figures.status != "ok") return figures.status + ": " + figures.reason;
  if (!figures.lost_to.empty()) {
    return "loses when measured: " + figures.lost_to + " has no higher peak and is faster";
  }
  return figures.is_anchor ? "an anchor of the calibration" : "";
}

// The ratios of the interval's ends to the median.
std::optional<std::array<double, 2>> interval_ratio(const MeasuredFigures& figures) {
  if (!figures.step_interval || !figures.step_time || figures.step_time->count() == 0) {
    return std::nullopt;
  }
  const auto step = static_cast<double>(figures.step_time->count());
  return std::array{static_cast<double>((*figures.step_interval)[0].count()) / step,
                    static_cast<double>((*figures.step_interval)[1].count()) / step};
}

table::Row measured_row(const std::string& name, const FrontPoint& point) {
  const MeasuredFigures& figures = *point.measured;
  const nanoseconds step = figures.step_time.value_or(nanoseconds(0));
  const auto ratio = interval_ratio(figures);
  const bool is_noisy = is_too_noisy(ratio);
  const std::string interval = !ratio     ? kNotMeasured
                               : is_noisy ? kTooNoisy
                                          : "+- " + format_percent(((*ratio)[1] - (*ratio)[0]) / 2);
  std::string peak = kNotMeasured;
  if (figures.peak) {
    peak = *figures.peak == point.figures.peak ? "equal" : format_bytes(*figures.peak);
  }
  const auto& calibrated = figures.calibrated_step_time;
  const std::string error = calibrated && figures.step_time && !is_noisy
                                ? format_change(step.count(), calibrated->count())
                                : kNotMeasured;
  return {{name, format_bytes(point.figures.peak), peak, format_duration(point.step_time),
           duration_cell(calibrated), duration_cell(figures.step_time), interval, error},
          note_of(figures),
          figures.status != "ok" || !figures.lost_to.empty()};
}

// How a family of baselines does beside the front's own points; empty if it is behind.
std::string family_note(const MeasuredFamily& family, const FrontMeasurement& own) {
  std::vector<std::string> notes;
  if (family.predicted > own.predicted_hypervolume) notes.emplace_back("ahead in prediction");
  if (family.measured && own.measured_hypervolume && *family.measured > *own.measured_hypervolume) {
    const auto& certain = family.measured_beyond_noise;
    notes.push_back(std::string("ahead when measured") + (!certain ? ""
                                                          : *certain > *own.measured_hypervolume
                                                              ? ", by more than the A/A interval"
                                                              : ", within the A/A interval"));
  }
  return joined(notes, "; ");
}

}  // namespace

Grid measured_grid(const Front& front) {
  Grid grid{{{"measured", Alignment::kLeft},
             {"predicted peak"},
             {"measured"},
             {"profile's step", Alignment::kRight, 2},
             {"calibrated step"},
             {"measured"},
             {"95 % interval", Alignment::kRight, 1},
             {"error"}},
            "notes"};
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    const FrontPoint& point = front.points[index];
    if (point.measured) grid.rows.push_back(measured_row(std::to_string(index), point));
  }
  for (const auto& [point, is_matched] : front.baselines) {
    if (point.measured) grid.rows.push_back(measured_row(point.plan.policy, point));
  }
  return grid;
}

Grid families_grid(const FrontMeasurement& measurement) {
  Grid grid{{{"hypervolume of", Alignment::kLeft}, {"predicted"}, {"measured"}}, ""};
  const auto add = [&](const std::string& name, double predicted,
                       const std::optional<double>& measured, const std::string& note) {
    grid.rows.push_back(
        {{name, format_fixed(predicted, 4), measured ? format_fixed(*measured, 4) : kNotMeasured},
         note});
  };
  add("own points", measurement.predicted_hypervolume, measurement.measured_hypervolume, "");
  for (const MeasuredFamily& family : measurement.families) {
    add(family.family, family.predicted, family.measured, family_note(family, measurement));
  }
  return grid;
}

std::string calibration_warning(const FrontRecord& record) {
  // Beyond this a profile of the same machine is of another state of it.
  constexpr double kStale = 1.5;
  const Front& front = record.front;
  const auto profiled = static_cast<double>(front.points[front.knee].step_time.count());
  const auto step = static_cast<double>(predicted_step(front, front.points[front.knee]).count());
  if (!front.measurement || record.time_source == ProfileSource::kRoofline || profiled <= 0 ||
      (step < kStale * profiled && profiled < kStale * step)) {
    return "";
  }
  return "Measured steps take " + format_fixed(step / profiled, 2) +
         " times what the profile's op times add up to: the profile is stale, or the machine was "
         "busy; profile again on an idle machine.";
}

std::string measurement_words(const FrontMeasurement& measurement) {
  std::string words =
      std::to_string(measurement.num_equal_peaks) + " of " +
      std::to_string(measurement.num_measured) +
      " measured peaks equal the predicted ones to the byte. Step times are predicted as " +
      format_fixed(measurement.slope, 3) + " times the profile's " +
      (measurement.offset_ns < 0 ? "- " : "+ ") +
      format_duration(nanoseconds(std::llround(std::abs(measurement.offset_ns)))) +
      ", fitted to the anchors";
  if (measurement.median_error_ratio) {
    words += "; over the other points the error is " +
             format_percent(*measurement.median_error_ratio) + " in the median and " +
             format_percent(*measurement.worst_error_ratio) + " at worst";
  }
  if (measurement.control_interval) {
    words +=
        "; the reference differs from itself (A/A) " + stray_words(*measurement.control_interval);
  }
  return words + ".";
}

}  // namespace rematch
