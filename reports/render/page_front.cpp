#include "reports/render/page_front.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "policies/search/hypervolume.h"
#include "reports/render/charts/search_chart.h"
#include "reports/render/charts/search_marks.h"
#include "reports/render/format.h"
#include "reports/render/front_tables.h"
#include "reports/render/front_text.h"
#include "reports/render/markup.h"
#include "reports/render/page_figure.h"
#include "reports/render/page_grid.h"

namespace rematch {
namespace {

// More points than a picture or a reader takes in.
constexpr std::size_t kMostPoints = 100;

// Those that were run, the knee, and more by the area that they add.
std::vector<std::size_t> telling_points(const Front& front) {
  std::vector<PlanePoint> plane;
  for (const FrontPoint& point : front.points) {
    plane.push_back({point.figures.peak.count, point.step_time.count()});
  }
  std::vector<std::size_t> shown = spread_points(plane, kMostPoints);
  for (std::size_t index = 0; index < front.points.size(); ++index) {
    if (front.points[index].measured || index == front.knee) shown.push_back(index);
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::string step_of(const Front& front, const FrontPoint& point) {
  return format_duration(predicted_step(front, point)) + " a step";
}

std::string change_of(const Front& front, const FrontPoint& point) {
  const FrontPoint& nothing = front.nothing_recomputed;
  if (nothing.figures.peak.count == 0 || nothing.step_time.count() == 0) return "";
  return ", " + format_change(nothing.figures.peak.count, point.figures.peak.count) + " for " +
         format_change(predicted_step(front, nothing).count(),
                       predicted_step(front, point).count()) +
         " step time";
}

std::string tiles(const FrontRecord& record) {
  const Front& front = record.front;
  const auto point_tile = [&](const std::string& name, std::size_t index) {
    const FrontPoint& point = front.points[index];
    return page_tile(name, format_bytes(point.figures.peak),
                     "point " + std::to_string(index) + change_of(front, point));
  };
  std::string text =
      page_tile("without checkpointing", format_bytes(front.nothing_recomputed.figures.peak),
                step_of(front, front.nothing_recomputed)) +
      point_tile("lowest peak", 0) + point_tile("knee", front.knee);
  if (!front.measurement) {
    return text +
           page_tile("hypervolume", format_fixed(front.hypervolume, 4),
                     "all baselines together " + format_fixed(front.baseline_hypervolume, 4));
  }
  const FrontMeasurement& measurement = *front.measurement;
  return text + page_tile("peaks as predicted",
                          std::to_string(measurement.num_equal_peaks) + " of " +
                              std::to_string(measurement.num_measured),
                          "runs have the predicted peak to the byte");
}

std::string as_sentence(std::string words) {
  words.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(words.front())));
  return words + ".";
}

std::string question_words(const FrontRecord& record) {
  if (record.answer) return answer_words(record) + ". ";
  if (record.budget) return "No plan fits " + format_bytes(*record.budget) + ". ";
  return "";
}

std::string picture_words(const FrontRecord& record, std::size_t num_shown) {
  const Front& front = record.front;
  std::string words = "Lower left is better. ";
  if (front.measurement) {
    words += measurement_words(*front.measurement);
  } else {
    words += "Nothing here was run: peaks are the simulator's, times are sums of " +
             std::string(to_string(record.time_source)) + " op times.";
  }
  words += words_left_out(num_shown, front.points.size(), "by the area that they add");
  return words + " Numbers are points of the table; a name that found no room is in it.";
}

bool never(std::size_t) { return false; }

std::vector<PageFigure> measured_figures(const Front& front) {
  const std::vector<const FrontPoint*> run = points_that_ran(front);
  const auto is_bad = [&run](std::size_t row) {
    return run[row]->measured->status != "ok" || !run[row]->measured->lost_to.empty();
  };
  return {{"Predicted and measured",
           "Step times are predicted by the line through the anchors; the error is the prediction "
           "over the measurement, less one.",
           page_grid(measured_grid(front), is_bad), Fold::kFolded},
          {"Hypervolume",
           "The share of the plane that plans cover, of the front's own points and of each family "
           "of baselines; more is better.",
           page_grid(families_grid(*front.measurement), never), Fold::kFolded}};
}

}  // namespace

PagePart page_front(const FrontRecord& record) {
  const Front& front = record.front;
  const std::vector<std::size_t> shown = telling_points(front);
  PagePart part;
  part.head = "<div class=\"tiles\">\n" + tiles(record) + "</div>\n<p class=\"verdict\">" +
              escape_markup(front.verdict) + "</p>\n";
  part.figures = {
      {"The front: step time against peak memory", picture_words(record, shown.size()),
       for_both_widths([&](double width) { return draw_search(record, shown, width); },
                       kFullPageWidth)},
      {"Points", question_words(record) + as_sentence(exactness_of(record)),
       page_grid(points_grid(record, shown, PlanWords::kShown), never), fold_of(shown.size())}};
  if (!front.baselines.empty()) {
    part.figures.push_back({"Baselines",
                            "Known policies, and planners of others, on the same model.",
                            page_grid(baselines_grid(record), never), Fold::kFolded});
  }
  if (!front.measurement) return part;
  for (PageFigure& figure : measured_figures(front)) part.figures.push_back(std::move(figure));
  return part;
}

}  // namespace rematch
