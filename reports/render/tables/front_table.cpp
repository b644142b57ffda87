#include "reports/render/tables/front_table.h"

#include <numeric>

#include "policies/base/joined.h"
#include "reports/render/format.h"
#include "reports/render/tables/front_measured.h"
#include "reports/render/tables/front_words.h"
#include "reports/render/tables/simple_table.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using table::Alignment;
using table::Grid;

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
           {"over bound", Alignment::kRight, 1},
           {"recomputed ops", Alignment::kRight, 1}},
          "keeps"};
}

std::string next_words(const FrontRecord& record, const FrontFiles& files) {
  // Keeping everything needs no plan.
  std::size_t number = lead_point(record).value_or(record.front.knee);
  if (record.front.points[number].figures.num_recomputed == 0) number = record.front.knee;
  const std::string point =
      (files.front.empty() ? "front.json" : files.front) + "#" + std::to_string(number);
  return (files.front.empty() ? "Next: with -o front.json every point is a plan: " : "Next: ") +
         describe_command(point, files) + " shows it op by op, " + run_command(point, files) +
         " runs it.";
}

// "1.2 GiB on the host; were its copies all hidden, the step would take 780 ms"
std::string host_words(const FrontRecord& record, const FrontPoint& point) {
  const StepHost& host = point.figures.host;
  if (host.copied_out.count == 0) return "";
  std::string words = format_bytes(host.peak) + " on the host";
  if (!point.copy_time) return words + ", copies not counted";
  const nanoseconds hidden = predicted_step(record.front, point.step_time - *point.copy_time);
  return words + "; were its copies all hidden, the step would take " + format_duration(hidden);
}

}  // namespace

// Rows that the device has no memory for say so first.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details) {
  const FrontPoint& none = record.front.reference();
  const PlanFigures& figures = point.figures;
  const nanoseconds step = predicted_step(record.front, point);
  if (record.device_memory && figures.peak > *record.device_memory) {
    details.insert(details.begin(), "exceeds " + memory_of(record));
  }
  details.push_back(host_words(record, point));
  std::erase(details, "");
  std::string phase(to_string(figures.peak_phase));
  if (!figures.peak_place.empty()) phase += " " + figures.peak_place;
  return {{name, format_bytes(figures.peak), phase,
           format_change(none.figures.peak.count, figures.peak.count), format_duration(step),
           format_change(predicted_step(record.front, none).count(), step.count()),
           format_change(predicted_step(record.front, point.step_time_bound).count(), step.count()),
           std::to_string(figures.num_recomputed)},
          joined(details, "; ")};
}

Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  Grid grid = empty_grid("point", record);
  for (const std::size_t index : shown) {
    const FrontPoint& point = record.front.points[index];
    const bool is_knee = index == record.front.knee;
    grid.rows.push_back(point_row(
        record, std::to_string(index), point,
        {is_knee ? "the knee: beyond it more bytes save little time" : "", short_saves(point)}));
  }
  return grid;
}

Grid baselines_grid(const FrontRecord& record) {
  Grid grid = empty_grid("baseline", record);
  for (const auto& [point, is_matched] : record.front.baselines) {
    grid.rows.push_back(point_row(record, point.plan.policy, point,
                                  {is_matched ? "" : "no point of the front is as good"}));
  }
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
  Grid points = points_grid(record, every_point(front));
  if (record.simple) points.rows.push_back(simple_row(record));
  std::string text = line(setting_words(record)) + line(lead_words(record)) +
                     line(calibration_warning(record)) +
                     line("Schedule: " + schedule_words(front.schedule) + ".") + "\n" +
                     line(plans_words(front) + "; " + exactness_words(record)) +
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

}  // namespace rematch
