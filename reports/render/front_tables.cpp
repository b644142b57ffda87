#include "reports/render/front_tables.h"

#include <cmath>

#include "reports/render/format.h"

namespace rematch {
namespace {

// All layers of a deep model would fill a screen.
constexpr std::size_t kLongestSaves = 300;

std::string place_of(const PlanFigures& figures) {
  const std::string phase(to_string(figures.peak_phase));
  return figures.peak_place.empty() ? phase : phase + " " + figures.peak_place;
}

Row row_of(const std::string& name, const FrontPoint& point, const FrontPoint& nothing,
           const std::string& detail) {
  return {{name, format_bytes(point.figures.peak), place_of(point.figures),
           format_change(nothing.figures.peak.count, point.figures.peak.count),
           format_duration(point.step_time),
           format_change(nothing.step_time.count(), point.step_time.count()),
           format_change(point.step_time_bound.count(), point.step_time.count()),
           std::to_string(point.figures.num_recomputed)},
          detail};
}

Grid grid_of(const std::string& name, const FrontRecord& record) {
  const bool is_roofline = record.time_source == ProfileSource::kRoofline;
  const std::string step = is_roofline ? "step (roofline)" : "predicted step";
  return {{{name, Alignment::kLeft},
           {"peak"},
           {"peak is in", Alignment::kLeft, 2},
           {"vs none"},
           {step},
           {"vs none"},
           {"over bound", Alignment::kRight, 1},
           {"recomputed ops", Alignment::kRight, 1}},
          "keeps",
          {}};
}

// "+1.2 %": the calibrated prediction over the measurement, less one.
std::string error_of(const MeasuredFigures& figures) {
  if (!figures.calibrated_step_time || !figures.step_time) return kNotMeasured;
  return format_change(figures.step_time->count(), figures.calibrated_step_time->count());
}

std::string note_of(const MeasuredFigures& figures) {
  if (figures.status != "ok") return figures.status + ": " + figures.reason;
  if (!figures.lost_to.empty()) {
    return "loses when measured: " + figures.lost_to + " has no higher peak and is faster";
  }
  return figures.is_anchor ? "an anchor of the calibration" : "";
}

Row measured_row(const std::string& name, const FrontPoint& point) {
  const MeasuredFigures& figures = *point.measured;
  using std::chrono::nanoseconds;
  const auto time = [](const std::optional<nanoseconds>& duration) {
    return duration ? format_duration(*duration) : std::string(kNotMeasured);
  };
  const auto known_to = [&]() -> std::string {
    if (!figures.step_interval || figures.step_time.value_or(nanoseconds(0)).count() == 0) {
      return kNotMeasured;
    }
    const auto [low, high] = *figures.step_interval;
    return "+- " + format_percent(static_cast<double>((high - low).count()) / 2 /
                                  static_cast<double>(figures.step_time->count()));
  };
  std::string peak = kNotMeasured;
  if (figures.peak) {
    peak = *figures.peak == point.figures.peak ? "equal" : format_bytes(*figures.peak);
  }
  return {{name, format_bytes(point.figures.peak), peak, time(figures.calibrated_step_time),
           time(figures.step_time), known_to(), error_of(figures)},
          note_of(figures)};
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? format_fixed(*ratio, 4) : kNotMeasured;
}

// Notes, and behind them what the plan keeps if that is asked for.
std::string detail_of(const std::string& note, const FrontPoint& point, PlanWords words) {
  if (words == PlanWords::kLeftOut) return note;
  const std::string keeps = short_saves(point);
  return note.empty() ? keeps : note + "; " + keeps;
}

std::string margin_words(const MeasuredFamily& family, double own) {
  if (!family.measured_beyond_noise) return "";
  return *family.measured_beyond_noise > own ? ", by more than the A/A interval"
                                             : ", within the A/A interval";
}

}  // namespace

std::string short_saves(const FrontPoint& point) {
  if (point.saves.size() <= kLongestSaves) return point.saves;
  const std::string start = point.saves.substr(0, kLongestSaves);
  return start.substr(0, start.find_last_of(' ')) + " ...";
}

std::vector<std::size_t> every_point(const Front& front) {
  std::vector<std::size_t> indices;
  for (std::size_t index = 0; index < front.points.size(); ++index) indices.push_back(index);
  return indices;
}

Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown,
                 PlanWords words) {
  Grid grid = grid_of("point", record);
  for (const std::size_t index : shown) {
    const FrontPoint& point = record.front.points[index];
    const bool is_knee = index == record.front.knee;
    grid.rows.push_back(row_of(
        std::to_string(index), point, record.front.nothing_recomputed,
        detail_of(is_knee ? "the knee: behind it more bytes buy little time" : "", point, words)));
  }
  return grid;
}

Grid baselines_grid(const FrontRecord& record) {
  Grid grid = grid_of("baseline", record);
  for (const Baseline& baseline : record.front.baselines) {
    grid.rows.push_back(row_of(baseline.point.plan.policy, baseline.point,
                               record.front.nothing_recomputed,
                               baseline.is_matched ? "" : "no point of the front is as good"));
  }
  return grid;
}

Grid measured_grid(const Front& front) {
  Grid grid{{{"measured", Alignment::kLeft},
             {"predicted peak"},
             {"measured"},
             {"predicted step"},
             {"measured"},
             {"known to", Alignment::kRight, 1},
             {"error"}},
            "notes",
            {}};
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    const FrontPoint& point = front.points[index];
    if (point.measured) grid.rows.push_back(measured_row(std::to_string(index), point));
  }
  for (const Baseline& baseline : front.baselines) {
    if (!baseline.point.measured) continue;
    grid.rows.push_back(measured_row(baseline.point.plan.policy, baseline.point));
  }
  return grid;
}

std::vector<const FrontPoint*> points_that_ran(const Front& front) {
  std::vector<const FrontPoint*> run;
  for (const FrontPoint& point : front.points) {
    if (point.measured) run.push_back(&point);
  }
  for (const Baseline& baseline : front.baselines) {
    if (baseline.point.measured) run.push_back(&baseline.point);
  }
  return run;
}

Grid families_grid(const FrontMeasurement& measurement) {
  Grid grid{{{"hypervolume of", Alignment::kLeft}, {"predicted"}, {"measured"}}, "", {}};
  grid.rows.push_back({{"own points", format_fixed(measurement.predicted_hypervolume, 4),
                        ratio_text(measurement.measured_hypervolume)},
                       ""});
  for (const MeasuredFamily& family : measurement.families) {
    std::string note;
    if (family.predicted > measurement.predicted_hypervolume) note = "ahead in prediction";
    if (family.measured && measurement.measured_hypervolume &&
        *family.measured > *measurement.measured_hypervolume) {
      note += (note.empty() ? "" : "; ") + std::string("ahead when measured") +
              margin_words(family, *measurement.measured_hypervolume);
    }
    grid.rows.push_back(
        {{family.family, format_fixed(family.predicted, 4), ratio_text(family.measured)}, note});
  }
  return grid;
}

}  // namespace rematch
