#include "harness/cli/search_text.h"

#include <cmath>

#include "harness/cli/output.h"
#include "reports/render/format.h"
#include "reports/render/grid.h"

namespace rematch {
namespace {

std::string place_of(const PlanFigures& figures) {
  const std::string phase(to_string(figures.peak_phase));
  return figures.peak_place.empty() ? phase : phase + " " + figures.peak_place;
}

Row row_of(const std::string& name, const FrontPoint& point, const FrontPoint& nothing,
           const std::string& detail) {
  const auto change = [](std::int64_t now, std::int64_t before) {
    return before == 0
               ? std::string(kNotMeasured)
               : format_change(static_cast<double>(now - before) / static_cast<double>(before));
  };
  return {
      {name, format_bytes(point.figures.peak), place_of(point.figures),
       change(point.figures.peak.count, nothing.figures.peak.count),
       format_duration(point.step_time), change(point.step_time.count(), nothing.step_time.count()),
       std::to_string(point.figures.num_recomputed)},
      detail};
}

Grid grid_of(const std::string& name, const FrontRecord& record) {
  const std::string step = "step (" + std::string(to_string(record.time_source)) + ")";
  return {{{name, Alignment::kLeft},
           {"peak"},
           {"peak is in", Alignment::kLeft, 2},
           {"vs none"},
           {step},
           {"vs none"},
           {"recomputed ops", Alignment::kRight, 1}},
          "keeps",
          {}};
}

std::string exactness_of(const Front& front) {
  std::string gaps;
  if (front.time_gap.count() > 0) gaps += " be faster by up to " + format_duration(front.time_gap);
  if (front.transient_gap.count > 0) {
    gaps += (gaps.empty() ? "" : " or") + std::string(" need up to ") +
            format_bytes(front.transient_gap) + " less";
  }
  return gaps.empty() ? "no save set, cut or mix of layers was left out"
                      : "a plan that was not found may" + gaps;
}

Grid points_grid(const FrontRecord& record) {
  Grid grid = grid_of("point", record);
  for (std::size_t index = 0; index < record.front.points.size(); ++index) {
    const bool is_knee = index == record.front.knee;
    grid.rows.push_back(row_of(std::to_string(index), record.front.points[index],
                               record.front.nothing_recomputed,
                               is_knee ? "the knee: behind it more bytes buy little time" : ""));
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

// "+1.2 %": the calibrated prediction over the measurement, less one.
std::string error_of(const MeasuredFigures& figures) {
  if (!figures.calibrated_step_time || !figures.step_time) return kNotMeasured;
  return format_change(static_cast<double>(figures.calibrated_step_time->count()) /
                           static_cast<double>(figures.step_time->count()) -
                       1);
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
  const auto time = [](const std::optional<std::chrono::nanoseconds>& duration) {
    return duration ? format_duration(*duration) : std::string(kNotMeasured);
  };
  const auto known_to = [&]() -> std::string {
    if (!figures.step_interval || !figures.step_time) return kNotMeasured;
    const auto [low, high] = *figures.step_interval;
    return "+- " + format_percent(static_cast<double>((high - low).count()) / 2 /
                                  static_cast<double>(figures.step_time->count()));
  };
  std::string peak = kNotMeasured;
  if (figures.peak)
    peak = *figures.peak == point.figures.peak ? "equal" : format_bytes(*figures.peak);
  return {{name, format_bytes(point.figures.peak), peak, time(figures.calibrated_step_time),
           time(figures.step_time), known_to(), error_of(figures)},
          note_of(figures)};
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

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? format_fixed(*ratio, 4) : kNotMeasured;
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
      const bool is_beyond = *family.measured_beyond_noise > *measurement.measured_hypervolume;
      note += (note.empty() ? "" : "; ") + std::string("ahead when measured, ") +
              (is_beyond ? "by more than the A/A interval" : "within the A/A interval");
    }
    grid.rows.push_back(
        {{family.family, format_fixed(family.predicted, 4), ratio_text(family.measured)}, note});
  }
  return grid;
}

std::string measured_text(const Front& front, const FrontMeasurement& measurement,
                          std::size_t width) {
  std::string text = format_grid(measured_grid(front), TableFormat::kText, width) + "\n";
  std::string line =
      std::to_string(measurement.num_equal_peaks) + " of " +
      std::to_string(measurement.num_measured) +
      " measured peaks are the predicted ones to the byte. Step times are predicted "
      "as " +
      format_fixed(measurement.slope, 3) + " times the profile's " +
      (measurement.offset_ns < 0 ? "- " : "+ ") +
      format_duration(std::chrono::nanoseconds(std::llround(std::abs(measurement.offset_ns)))) +
      ", from the anchors";
  if (measurement.median_error_ratio) {
    line += "; off by " + format_percent(*measurement.median_error_ratio) + " in the median and " +
            format_percent(*measurement.worst_error_ratio) + " at worst over the others";
  }
  if (measurement.control_interval) {
    line += ", where the reference differs from itself (A/A) by " +
            format_change((*measurement.control_interval)[0] - 1) + " to " +
            format_change((*measurement.control_interval)[1] - 1);
  }
  text += format_line(line + ".", TableFormat::kText, width) + "\n";
  return text + format_grid(families_grid(measurement), TableFormat::kText, width) + "\n";
}

std::string ranks_of(const FrontRecord& record) {
  if (record.world == 1) return "";
  return ". Predicted bytes of one of " + std::to_string(record.world) +
         " ranks that share parameters, gradients and optimizer state, with the block at work "
         "gathered; times without communication";
}

std::string in_words(const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " + format_duration(point.step_time) +
         ": " + point.saves;
}

}  // namespace

std::string front_to_text(const FrontRecord& record) {
  const Front& front = record.front;
  const std::size_t width = terminal_columns();
  const std::string exactness = front.is_complete
                                    ? exactness_of(front)
                                    : "the search was stopped, so better ones may be missing";
  const auto line = [&](const std::string& text) {
    return format_line(text, TableFormat::kText, width);
  };
  std::string text = line(
      record.model + " on " + record.device + ", " + std::string(to_string(front.schedule)) + ": " +
      std::to_string(front.points.size()) + " of " + std::to_string(front.num_plans_found) +
      " plans worth having; " + exactness + ranks_of(record));
  text += "\n" + format_grid(points_grid(record), TableFormat::kText, width) + "\n";
  if (!front.baselines.empty()) {
    text += format_grid(baselines_grid(record), TableFormat::kText, width) + "\n";
  }
  text += line("Hypervolume " + format_fixed(front.hypervolume, 4) +
               ", of all baselines together " + format_fixed(front.baseline_hypervolume, 4));
  if (front.measurement) text += measured_text(front, *front.measurement, width);
  text += line("Verdict: " + front.verdict);
  text += line("The knee, point " + std::to_string(front.knee) + ": " +
               in_words(front.points[front.knee]));
  if (record.answer) text += line("The answer: " + in_words(*record.answer));
  return text;
}

}  // namespace rematch
