#include "reports/render/front_text.h"

#include <cmath>

#include "reports/render/format.h"
#include "reports/render/front_tables.h"

namespace rematch {
namespace {

std::string figures_of(const FrontPoint& point) {
  return "peak " + format_bytes(point.figures.peak) + ", step " + format_duration(point.step_time);
}

std::string ranks_of(const FrontRecord& record) {
  if (record.world == 1) return "";
  return ". Predicted bytes of one of " + std::to_string(record.world) +
         " ranks that share parameters, gradients and optimizer state, with the block at work "
         "gathered; times without communication";
}

}  // namespace

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

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width) {
  const Front& front = record.front;
  const auto line = [&](const std::string& words) {
    return words.empty() ? "" : format_line(words, format, width);
  };
  const auto table = [&](const Grid& grid) { return format_grid(grid, format, width) + "\n"; };
  std::string text =
      line(record.model + " on " + record.device + ", " + std::string(to_string(front.schedule)) +
           ": " + std::to_string(front.points.size()) + " of " +
           std::to_string(front.num_plans_found) + " plans worth having; " + exactness_of(record)) +
      "\n";
  text += table(points_grid(record, every_point(front), PlanWords::kLeftOut));
  if (!front.baselines.empty()) text += table(baselines_grid(record));
  text += line("Hypervolume " + format_fixed(front.hypervolume, 4) +
               (front.baselines.empty() ? ""
                                        : ", of all baselines together " +
                                              format_fixed(front.baseline_hypervolume, 4)));
  if (front.measurement) {
    text += table(measured_grid(front)) + line(measurement_words(*front.measurement)) +
            table(families_grid(*front.measurement));
  }
  return text + line("Verdict: " + front.verdict) + line(knee_words(front)) +
         line(answer_words(record));
}

}  // namespace rematch
