#include "reports/render/charts/search_chart.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reports/render/charts/plane.h"
#include "reports/render/charts/search_marks.h"
#include "reports/render/format.h"
#include "reports/render/front_tables.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

constexpr double kRadius = 4.5;
constexpr double kSquareRadius = 4;

// A budget is nearer to what the reader asks than the device.
std::optional<MemoryLimit> limit_of(const FrontRecord& record) {
  if (record.budget) return MemoryLimit{"budget", *record.budget};
  if (record.device_memory) return MemoryLimit{"device limit", *record.device_memory};
  return std::nullopt;
}

Paint paint_of(const PlanMark& mark) {
  return mark.owner == PlanOwner::kFront ? Paint::kBlue : Paint::kDarkGrey;
}

Marker marker_of(const PlanMark& mark, Position at) {
  const bool is_own = mark.owner == PlanOwner::kFront;
  return {is_own ? MarkerKind::kCircle : MarkerKind::kSquare,
          at,
          is_own ? kRadius : kSquareRadius,
          Paint::kSurface,
          paint_of(mark),
          ""};
}

// Thin, so that what is measured stands out.
void draw_join(Picture& picture, const PlanMark& mark, std::vector<Box>& lines) {
  draw_line(picture, {mark.predicted, *mark.measured, paint_of(mark), 1}, lines);
}

// Baselines first, so that the front's own lie above them.
void draw_marks(Picture& picture, const Front& front, const std::vector<PlanMark>& marks,
                const Plane& plane, std::vector<Box>& lines) {
  for (const PlanMark& mark : marks) {
    if (!mark.measured) continue;
    draw_join(picture, mark, lines);
    draw_step_interval(picture, step_interval(*mark.point->measured), mark.measured->x,
                       paint_of(mark), plane, lines);
  }
  for (const PlanMark& mark : marks) {
    Marker predicted = marker_of(mark, mark.predicted);
    const std::string hint = describe_front_point(front, *mark.point, mark.name);
    predicted.hint = hint;
    picture.add(predicted);
    if (!mark.measured) continue;
    Marker measured = marker_of(mark, *mark.measured);
    measured.fill = paint_of(mark);
    measured.stroke = Paint::kSurface;
    measured.hint = hint;
    picture.add(measured);
    if (!mark.is_lost()) continue;
    picture.add(Marker{MarkerKind::kCross, *mark.measured, kRadius + 2.5, Paint::kClear,
                       Paint::kOrange, hint});
  }
}

// The telling ones first. Plans at one place share a name: "nth_first(2), first_n(16)".
std::vector<PlaneName> names_of(const std::vector<PlanMark>& marks) {
  std::vector<const PlanMark*> order;
  for (const PlanMark& mark : marks) order.push_back(&mark);
  std::stable_sort(order.begin(), order.end(), [](const PlanMark* a, const PlanMark* b) {
    const auto rank = [](const PlanMark& mark) {
      return mark.is_corner ? 0 : mark.owner == PlanOwner::kBaseline ? 1 : 2;
    };
    return rank(*a) < rank(*b);
  });
  std::vector<PlaneName> names;
  std::map<std::pair<double, double>, std::size_t> known;  // of baselines
  for (const PlanMark* mark : order) {
    if (mark->owner == PlanOwner::kFront) {
      names.push_back({mark->named_at(), mark->name, Paint::kBlue, Weight::kBold});
      continue;
    }
    const auto [found, is_new] =
        known.try_emplace({mark->predicted.x, mark->predicted.y}, names.size());
    if (is_new) {
      names.push_back({mark->named_at(), mark->name, Paint::kInk, Weight::kNormal});
    } else {
      names[found->second].text += ", " + mark->name;
    }
  }
  return names;
}

// What no name may cover: the lines and every marker.
std::vector<Box> boxes_of(const std::vector<PlanMark>& marks, std::vector<Box> boxes) {
  for (const PlanMark& mark : marks) {
    boxes.push_back(around_marker(mark.predicted, kRadius));
    if (mark.measured) boxes.push_back(around_marker(*mark.measured, kRadius));
  }
  return boxes;
}

std::vector<LegendEntry> legend_of(const FrontRecord& record, const std::vector<PlanMark>& marks) {
  const auto any = [&](auto&& holds) { return std::any_of(marks.begin(), marks.end(), holds); };
  const bool has_runs = any([](const PlanMark& mark) { return mark.measured.has_value(); });
  const std::string predicted =
      has_runs ? "predicted, joined to its measurement"
               : "predicted, " + std::string(to_string(record.time_source)) + " op times";
  std::vector<LegendEntry> entries = {
      {MarkerKind::kCircle, Paint::kSurface, Paint::kBlue, predicted}};
  if (has_runs) {
    entries.push_back(
        {MarkerKind::kCircle, Paint::kBlue, Paint::kClear, "measured, 95 % interval"});
  }
  if (any([](const PlanMark& mark) { return mark.is_lost(); })) {
    entries.push_back(
        {MarkerKind::kCross, Paint::kClear, Paint::kOrange, "loses to another when measured"});
  }
  const auto is_baseline = [](const PlanMark& mark) { return mark.owner == PlanOwner::kBaseline; };
  if (any(is_baseline)) {
    entries.push_back({MarkerKind::kSquare, Paint::kSurface, Paint::kDarkGrey,
                       has_runs ? "baseline, predicted" : "baseline"});
  }
  if (any([&](const PlanMark& mark) { return is_baseline(mark) && mark.measured; })) {
    entries.push_back({MarkerKind::kSquare, Paint::kDarkGrey, Paint::kClear, "baseline, measured"});
  }
  return entries;
}

}  // namespace

std::string describe_front_point(const Front& front, const FrontPoint& point,
                                 const std::string& name) {
  const PlanFigures& figures = point.figures;
  std::string text = name;
  if (name != point.plan.policy) text = "point " + name;
  text += "\n" + short_saves(point) + "\nrecomputes " + std::to_string(figures.num_recomputed) +
          " ops a step\npredicted peak " + format_bytes(figures.peak) + " in " +
          std::string(to_string(figures.peak_phase));
  if (!figures.peak_place.empty()) text += " of " + figures.peak_place;
  text += "\npredicted step " + format_duration(predicted_step(front, point));
  if (!point.measured) return text;
  const MeasuredFigures& measured = *point.measured;
  if (measured.status != "ok") return text + "\nrun: " + measured.status + ", " + measured.reason;
  if (measured.peak) text += "\nmeasured peak " + format_bytes(*measured.peak);
  if (measured.step_time) {
    text += "\nmeasured step " + format_duration(*measured.step_time);
    const auto [low, high] = measured_interval(measured);
    if (low != high) {
      text += ", 95 % within " + format_duration(low) + " to " + format_duration(high);
    }
  }
  if (!measured.lost_to.empty()) text += "\nloses to " + measured.lost_to;
  return text;
}

Picture draw_search(const FrontRecord& record, const std::vector<std::size_t>& shown,
                    double width) {
  Picture picture{"Predicted and measured step time against peak memory", width, 0, {}};
  std::vector<PlanMark> marks = list_marks(record, shown);
  const PlaneRange peaks = peaks_of(marks);
  const auto limit = limit_of(record);
  const Plane plane = make_plane(peaks, steps_of(record.front, marks),
                                 limit ? std::optional(limit->bytes) : std::nullopt, width);
  place_marks(record.front, plane, marks);
  draw_plane(picture, plane);
  std::vector<Box> lines = draw_limit(picture, limit, peaks, plane);
  std::vector<Position> corners;
  for (const PlanMark& mark : marks) {
    if (mark.owner == PlanOwner::kFront) corners.push_back(mark.predicted);
  }
  draw_steps(picture, std::move(corners), lines);
  draw_marks(picture, record.front, marks, plane, lines);
  draw_names(picture, names_of(marks), kRadius, boxes_of(marks, std::move(lines)), plane);
  end_with_legend(picture, plane, legend_of(record, marks));
  return picture;
}

}  // namespace rematch
