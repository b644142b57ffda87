#include "reports/render/tables/front_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "reports/render/noise.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using table::Alignment;
using table::duration_cell;
using table::Grid;
using table::kNotMeasured;

constexpr const char* kOverBound = "over bound";

Grid empty_grid(const std::string& name, const FrontRecord& record) {
  const bool is_roofline = record.time_source == ProfileSource::kRoofline;
  return {{{name, Alignment::kLeft},
           {"peak"},
           {"peak phase", Alignment::kLeft, 2},
           {"vs none"},
           {record.front.measurement ? "calibrated step"
            : is_roofline            ? "step (roofline)"
                                     : "predicted step"},
           {"vs none"},
           {kOverBound, Alignment::kRight, 1},
           {"recomputed ops", Alignment::kRight, 1}},
          "keeps"};
}

// If only the convex hull of the front was searched, every bound is the step time without
// checkpointing. The column of bounds is then omitted, because it would repeat "vs none".
void drop_trivial_bound(const FrontRecord& record, Grid& grid) {
  const auto is_trivial = [&](const FrontPoint& point) {
    return point.step_time_bound == record.front.reference().step_time;
  };
  for (const FrontPoint& point : record.front.points) {
    if (!is_trivial(point)) return;
  }
  const auto column =
      std::find_if(grid.columns.begin(), grid.columns.end(),
                   [](const table::Column& each) { return each.title == kOverBound; });
  const auto index = column - grid.columns.begin();
  for (table::Row& row : grid.rows) row.cells.erase(row.cells.begin() + index);
  grid.columns.erase(column);
}

// Returns text such as "1.2 GiB on the host, compute hides all copies" or "1.2 GiB on the host; if
// compute hid all copies, the step would take 780 ms".
std::string host_words(const FrontRecord& record, const FrontPoint& point) {
  const HostMemory& host = point.figures.host;
  if (host.copied_out.count == 0) return "";
  std::string words = format_bytes(host.peak) + " on the host";
  if (!point.copy_time) return words + ", copies not counted";
  if (point.copy_time->count() == 0) return words + ", compute hides all copies";
  const nanoseconds hidden = predicted_step(record.front, point.step_time - *point.copy_time);
  return words + "; if compute hid all copies, the step would take " + format_duration(hidden);
}

}  // namespace

std::string next_words(const FrontRecord& record, const FrontFiles& files) {
  // If the leading point keeps everything, uses the knee instead, because keeping everything needs
  // no plan.
  std::size_t number = lead_point(record).value_or(record.front.knee);
  if (record.front.points[number].figures.num_recomputed == 0) number = record.front.knee;
  const std::string point =
      (files.front.empty() ? "front.json" : files.front) + "#" + std::to_string(number);
  // The plan of a pipeline has several stages, which one description cannot show.
  const bool has_stages = !record.front.points[number].plan.other_shapes.empty();
  return (files.front.empty() ? "Next: add -o front.json to store every point as a plan: "
                              : "Next: ") +
         (has_stages ? "rematch predict --plan " + point + " shows its stages, "
                     : describe_command(point, files) + " shows the plan op by op, ") +
         run_command(record, point, files) + " runs it.";
}

// Puts a warning first if the peak exceeds the device's memory.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details) {
  const FrontPoint& none = record.front.reference();
  const PlanFigures& figures = point.figures;
  const nanoseconds step = predicted_step(record.front, point);
  const nanoseconds bound = predicted_step(record.front, point.step_time_bound);
  const std::optional<Bytes> memory = record.memory_for_tensors();
  if (memory && figures.peak > *memory) {
    details.insert(details.begin(), "exceeds " + of_device(record) + format_bytes(*memory) +
                                        (record.reserve ? " for tensors" : ""));
  }
  details.push_back(host_words(record, point));
  std::erase(details, "");
  std::string phase(to_string(figures.peak_phase));
  if (!figures.peak_place.empty()) phase += " " + figures.peak_place;
  return {{name, format_bytes(figures.peak), phase,
           format_change(none.figures.peak.count, figures.peak.count), format_duration(step),
           format_change(predicted_step(record.front, none).count(), step.count()),
           // Clamps the distance from the bound to 0, because a rounded time may be just below its
           // bound.
           format_change(bound.count(), std::max(bound, step).count()),
           std::to_string(figures.num_recomputed)},
          joined(details, "; ")};
}

Grid empty_points_grid(const FrontRecord& record) { return empty_grid("point", record); }

Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  Grid grid = empty_points_grid(record);
  for (const std::size_t index : shown) {
    const FrontPoint& point = record.front.points[index];
    const bool is_knee = index == record.front.knee;
    grid.rows.push_back(
        point_row(record, std::to_string(index), point,
                  {is_knee ? "the knee: beyond this point, more memory saves little time" : "",
                   short_saves(point)}));
  }
  if (record.simple) grid.rows.push_back(simple_row(record));
  drop_trivial_bound(record, grid);
  return grid;
}

Grid baselines_grid(const FrontRecord& record) {
  Grid grid = empty_grid("baseline", record);
  for (const auto& [point, is_matched] : record.front.baselines) {
    grid.rows.push_back(point_row(record, point.plan.policy, point,
                                  {is_matched ? "" : "no point of the front is as good"}));
  }
  drop_trivial_bound(record, grid);
  return grid;
}

std::vector<std::size_t> every_point(const Front& front) {
  std::vector<std::size_t> indices(front.points.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files) {
  const Front& front = record.front;
  const auto line = [&](const std::string& words) {
    return words.empty() ? "" : table::format_line(words, format, width);
  };
  const auto grid_text = [&](const Grid& grid) {
    return table::format_grid(grid, format, width) + "\n";
  };
  const Grid points = points_grid(record, every_point(front));
  std::string text =
      line(setting_words(record)) + line(lead_words(record)) + line(calibration_warning(record)) +
      line("Schedule: " + schedule_words(front.schedule, record) + ".") + "\n" +
      line(plans_words(front) + "; " + exactness_words(record)) + line(ceilings_words(record)) +
      line(offload_words(record)) + "\n" + grid_text(points);
  if (const std::string words = communication_words(record); !words.empty()) {
    text += line(words) + "\n";
  }
  if (!front.baselines.empty()) text += grid_text(baselines_grid(record));
  text += line(hypervolume_words(front));
  if (front.measurement) {
    text += grid_text(measured_grid(front)) + line(measurement_words(*front.measurement)) +
            grid_text(families_grid(*front.measurement));
  }
  return text + line("Verdict: " + front.verdict) + line(knee_words(front)) +
         line(next_words(record, files));
}

namespace {

std::string note_of(const MeasuredFigures& figures) {
  if (figures.status != "ok") return figures.status + ": " + figures.reason;
  if (!figures.lost_to.empty()) {
    return "loses when measured: " + figures.lost_to + " has no higher peak and is faster";
  }
  return figures.is_anchor ? "an anchor of the calibration" : "";
}

// Returns the ends of the interval divided by the median.
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

// Returns text that compares a family of baselines with the front's own points. Empty if the family
// is not ahead.
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

}  // namespace rematch
