#include "reports/render/front_text.h"

#include <cmath>
#include <optional>
#include <vector>

#include "reports/render/format.h"
#include "reports/render/front_tables.h"

namespace rematch {
namespace {

std::string figures_of(const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " + format_duration(point.step_time);
}

// Nothing: no point has these figures, or all are larger than the limit.
std::optional<std::size_t> index_of(const Front& front, const FrontPoint& sought) {
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    const FrontPoint& point = front.points[index];
    if (point.figures.peak == sought.figures.peak && point.step_time == sought.step_time) {
      return index;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> fastest_within(const Front& front, Bytes limit) {
  std::optional<std::size_t> fastest;
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    if (front.points[index].figures.peak <= limit) fastest = index;
  }
  return fastest;
}

// The point that a reader is to look at first.
std::optional<std::size_t> lead_of(const FrontRecord& record) {
  if (record.answer) return index_of(record.front, *record.answer);
  if (record.budget || record.max_slowdown_ratio || !record.device_memory) return std::nullopt;
  return fastest_within(record.front, *record.device_memory);
}

std::string memory_of(const FrontRecord& record) {
  return record.device + "'s " + format_bytes(*record.device_memory);
}

// Of the point that leads. A file may hold an answer without what was asked.
std::string question_of(const FrontRecord& record) {
  if (record.budget) return "The fastest that fits " + format_bytes(*record.budget);
  if (record.max_slowdown_ratio) {
    return "The lowest peak for at most " + format_percent(*record.max_slowdown_ratio) +
           " more step time";
  }
  return record.answer ? "The answer" : "The fastest that fits " + memory_of(record);
}

// Rows that the device has no memory for say so.
void mark_too_large(const FrontRecord& record, const std::vector<const FrontPoint*>& points,
                    Grid& grid) {
  if (!record.device_memory) return;
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    if (points[row]->figures.peak <= *record.device_memory) continue;
    std::string& detail = grid.rows[row].detail;
    detail = "exceeds " + memory_of(record) + (detail.empty() ? "" : "; " + detail);
  }
}

Grid marked_points(const FrontRecord& record) {
  Grid grid = points_grid(record, every_point(record.front), PlanWords::kShown);
  std::vector<const FrontPoint*> points;
  for (const FrontPoint& point : record.front.points) points.push_back(&point);
  mark_too_large(record, points, grid);
  return grid;
}

Grid marked_baselines(const FrontRecord& record) {
  Grid grid = baselines_grid(record);
  std::vector<const FrontPoint*> points;
  for (const Baseline& baseline : record.front.baselines) points.push_back(&baseline.point);
  mark_too_large(record, points, grid);
  return grid;
}

std::string next_words(const FrontRecord& record, const std::string& file) {
  const std::string number = std::to_string(lead_of(record).value_or(record.front.knee));
  const std::string point = (file.empty() ? "front.json" : file) + "#" + number;
  return (file.empty() ? "Next: with -o front.json every point is a plan: " : "Next: ") +
         std::string("rematch describe --plan ") + point +
         " shows it op by op, rematch run --plan " + point + " runs it.";
}

std::string ranks_of(const FrontRecord& record) {
  if (record.world == 1) return "";
  return ". Predicted bytes of one of " + std::to_string(record.world) +
         " ranks that share parameters, gradients and optimizer state, with the block at work "
         "gathered; times without communication";
}

}  // namespace

std::string setting_words(const FrontRecord& record) {
  std::string words = record.model + ", " + record.dtype;
  if (const auto batch = record.dimensions.find("batch"); batch != record.dimensions.end()) {
    words += ", batch " + std::to_string(batch->second);
  }
  if (const auto tokens = record.dimensions.find("tokens"); tokens != record.dimensions.end()) {
    words += ", " + std::to_string(tokens->second) + " tokens";
  }
  words += record.optimizer == OptimizerModel::kAdamW ? ", AdamW" : ", no optimizer";
  words += ", on " + record.device;
  if (record.device_memory) words += " (" + format_bytes(*record.device_memory) + ")";
  words += ", " + std::string(to_string(record.front.schedule));
  if (record.world > 1) {
    words += "; one of " + std::to_string(record.world) + " ranks, communication not counted";
  }
  return words;
}

std::string lead_words(const FrontRecord& record) {
  if (record.budget && !record.answer) return "No plan fits " + format_bytes(*record.budget) + ".";
  const bool is_asked = record.answer.has_value();
  if (!is_asked && (record.max_slowdown_ratio || !record.device_memory)) return "";
  const std::optional<std::size_t> index = lead_of(record);
  if (!is_asked && !index) {
    return "No point fits " + memory_of(record) + "; the lowest peak is " +
           format_bytes(record.front.points.front().figures.peak) + ".";
  }
  const FrontPoint& point = is_asked ? *record.answer : record.front.points[*index];
  return question_of(record) + (index ? ", point " + std::to_string(*index) : "") + ": " +
         figures_of(point) + " (" +
         format_change(record.front.nothing_recomputed.step_time.count(), point.step_time.count()) +
         "): " + point.saves;
}

std::string exactness_of(const FrontRecord& record) {
  const Front& front = record.front;
  if (!front.is_complete) return "the search was stopped, so better ones may be missing";
  std::string gaps;
  if (front.time_gap.count() > 0) gaps += " be faster by up to " + format_duration(front.time_gap);
  if (front.transient_gap.count > 0) {
    gaps += (gaps.empty() ? "" : " or") + std::string(" need up to ") +
            format_bytes(front.transient_gap) + " less";
  }
  return (gaps.empty() ? "no save set of a block and no mix of layers was left out"
                       : "a plan that was not found may" + gaps) +
         ranks_of(record);
}

std::string measurement_words(const FrontMeasurement& measurement) {
  std::string words =
      std::to_string(measurement.num_equal_peaks) + " of " +
      std::to_string(measurement.num_measured) +
      " measured peaks are the predicted ones to the byte. Step times are predicted as " +
      format_fixed(measurement.slope, 3) + " times the profile's " +
      (measurement.offset_ns < 0 ? "- " : "+ ") +
      format_duration(std::chrono::nanoseconds(std::llround(std::abs(measurement.offset_ns)))) +
      ", from the anchors";
  if (measurement.median_error_ratio) {
    words += "; off by " + format_percent(*measurement.median_error_ratio) + " in the median and " +
             format_percent(*measurement.worst_error_ratio) + " at worst over the others";
  }
  if (measurement.control_interval) {
    words += ", where the reference differs from itself (A/A) by " +
             format_change((*measurement.control_interval)[0] - 1) + " to " +
             format_change((*measurement.control_interval)[1] - 1);
  }
  return words + ".";
}

std::string knee_words(const Front& front) {
  return "The knee, point " + std::to_string(front.knee) + ": " +
         figures_of(front.points[front.knee]);
}

std::string answer_words(const FrontRecord& record) {
  if (!record.answer) return "";
  return "The answer: " + figures_of(*record.answer) + ": " + record.answer->saves;
}

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const std::string& file) {
  const Front& front = record.front;
  const auto line = [&](const std::string& words) {
    return words.empty() ? "" : format_line(words, format, width);
  };
  const auto table = [&](const Grid& grid) { return format_grid(grid, format, width) + "\n"; };
  std::string text = line(setting_words(record)) + line(lead_words(record)) + "\n";
  text +=
      line(std::to_string(front.points.size()) + " of " + std::to_string(front.num_plans_found) +
           " plans worth having; " + exactness_of(record)) +
      "\n";
  text += table(marked_points(record));
  if (!front.baselines.empty()) text += table(marked_baselines(record));
  text += line("Hypervolume " + format_fixed(front.hypervolume, 4) +
               (front.baselines.empty() ? ""
                                        : ", of all baselines together " +
                                              format_fixed(front.baseline_hypervolume, 4)));
  if (front.measurement) {
    text += table(measured_grid(front)) + line(measurement_words(*front.measurement)) +
            table(families_grid(*front.measurement));
  }
  return text + line("Verdict: " + front.verdict) + line(knee_words(front)) +
         line(next_words(record, file));
}

}  // namespace rematch
