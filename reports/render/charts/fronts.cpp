#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "policies/trace/op_class.h"
#include "reports/render/charts/builders.h"
#include "reports/render/tables/front_table.h"

namespace rematch::chart {
namespace {

using std::chrono::nanoseconds;

Position place(Bytes peak, nanoseconds step) {
  return {static_cast<double>(peak.count), static_cast<double>(step.count())};
}

std::optional<std::array<double, 2>> interval_of(
    const std::optional<std::array<nanoseconds, 2>>& interval) {
  if (!interval) return std::nullopt;
  return std::array{static_cast<double>((*interval)[0].count()),
                    static_cast<double>((*interval)[1].count())};
}

// Adds the legend entry if any spot has its style.
template <class Holds>
void add_key(std::vector<Key>& legend, const std::vector<Spot>& spots, Holds holds, Key key) {
  if (std::any_of(spots.begin(), spots.end(), holds)) legend.push_back(std::move(key));
}

Spot spot_of(const ComparedPoint& compared) {
  // If a point's two markers are closer than this, only the measured marker is drawn, because it
  // would hide the predicted marker.
  constexpr double kVisible = 0.002;
  const PointRecord& record = *compared.point;
  Spot spot;
  spot.measured = place(*measured_peak(record), *measured_step(record));
  spot.interval = interval_of(record.time->step_interval);
  if (const auto& predicted = record.memory->predicted_peak_allocated) {
    const Position at = place(*predicted, *measured_step(record));
    if (std::abs(at.x - spot.measured->x) > kVisible * spot.measured->x) spot.predicted = at;
  }
  spot.kind =
      record.identity.schedule == Schedule::kOnDemand ? MarkerKind::kCircle : MarkerKind::kSquare;
  spot.paint = compared.is_on_front    ? Paint::kBlue
               : compared.is_dominated ? Paint::kGrey
                                       : Paint::kTeal;
  spot.name = record.policy;
  spot.rank = rank_of(compared);
  spot.name_paint = spot.rank < 2 ? Paint::kInk : Paint::kMuted;
  spot.is_bold = compared.is_baseline();
  spot.hint = compared.hint();
  return spot;
}

std::vector<Key> measured_legend(const std::vector<Spot>& spots) {
  std::vector<Key> legend = {{"On the front", MarkerKind::kCircle, Paint::kBlue}};
  const auto has_paint = [](Paint paint) {
    return [paint](const Spot& spot) { return spot.paint == paint; };
  };
  add_key(legend, spots, has_paint(Paint::kGrey), {"Dominated", MarkerKind::kCircle, Paint::kGrey});
  add_key(legend, spots, has_paint(Paint::kTeal),
          {"Unsure: equally fast within noise", MarkerKind::kCircle, Paint::kTeal});
  const bool has_both = std::any_of(spots.begin(), spots.end(), [&](const Spot& spot) {
    return spot.kind != spots.front().kind;
  });
  if (has_both) {
    legend.push_back({"on_demand", MarkerKind::kCircle, Paint::kClear, Paint::kMuted});
    legend.push_back({"whole_region", MarkerKind::kSquare, Paint::kClear, Paint::kMuted});
  }
  add_key(legend, spots, [](const Spot& spot) { return spot.predicted.has_value(); },
          {"Predicted, joined to the measured peak", MarkerKind::kCircle, Paint::kSurface,
           Paint::kGrey});
  return legend;
}

// Returns several lines: the kept ops, and the predicted and measured peak and step time.
std::string hint_of(const Front& front, const FrontPoint& point, const std::string& name) {
  const PlanFigures& figures = point.figures;
  std::string text = name + "\n" + short_saves(point) + "\nrecomputes " +
                     std::to_string(figures.num_recomputed) + " ops a step\npredicted peak " +
                     format_bytes(figures.peak) + " in " +
                     std::string(to_string(figures.peak_phase));
  if (!figures.peak_place.empty()) text += " of " + figures.peak_place;
  text += "\npredicted step " + format_duration(predicted_step(front, point));
  if (!point.measured) return text;
  const MeasuredFigures& measured = *point.measured;
  if (measured.status != "ok") return text + "\nrun: " + measured.status + ", " + measured.reason;
  if (measured.peak) text += "\nmeasured peak " + format_bytes(*measured.peak);
  if (measured.step_time) text += "\nmeasured step " + format_duration(*measured.step_time);
  if (const auto& interval = measured.step_interval; interval && measured.step_time) {
    text += ", 95 % interval " + format_duration((*interval)[0]) + " to " +
            format_duration((*interval)[1]);
  }
  if (!measured.lost_to.empty()) text += "\nbeaten by " + measured.lost_to;
  return text;
}

// Points of the front are blue circles, and baselines are grey squares.
Spot spot_of(const Front& front, const FrontPoint& point, const std::string& name, bool is_own) {
  Spot spot;
  spot.predicted = place(point.figures.peak, predicted_step(front, point));
  if (const auto& measured = point.measured; measured && measured->peak && measured->step_time) {
    spot.measured = place(*measured->peak, *measured->step_time);
    spot.interval = interval_of(measured->step_interval);
    spot.is_crossed = !measured->lost_to.empty();
  }
  spot.kind = is_own ? MarkerKind::kCircle : MarkerKind::kSquare;
  spot.paint = is_own ? Paint::kBlue : Paint::kDarkGrey;
  spot.name = name;
  spot.name_paint = is_own ? Paint::kBlue : Paint::kInk;
  spot.is_bold = is_own;
  spot.hint = hint_of(front, point, is_own ? "point " + name : name);
  return spot;
}

std::vector<Key> searched_legend(const FrontRecord& record, const std::vector<Spot>& spots) {
  const auto is_run = [](const Spot& spot) { return spot.measured.has_value(); };
  const auto is_baseline = [](const Spot& spot) { return spot.kind == MarkerKind::kSquare; };
  const bool has_runs = std::any_of(spots.begin(), spots.end(), is_run);
  const std::string source = std::string(to_string(record.time_source)) + " op times";
  std::vector<Key> legend = {
      {has_runs ? "Predicted, joined to its measurement" : "Predicted from " + source,
       MarkerKind::kCircle, Paint::kSurface, Paint::kBlue}};
  add_key(legend, spots, is_run,
          {"Measured, with its 95 % interval", MarkerKind::kCircle, Paint::kBlue});
  add_key(
      legend, spots, [](const Spot& spot) { return spot.is_crossed; },
      {"Beaten by another point when measured", MarkerKind::kCross, Paint::kClear, Paint::kOrange});
  add_key(legend, spots, is_baseline,
          {has_runs ? "Baseline, predicted" : "Baseline", MarkerKind::kSquare, Paint::kSurface,
           Paint::kDarkGrey});
  add_key(legend, spots, [&](const Spot& spot) { return is_baseline(spot) && is_run(spot); },
          {"Baseline, measured", MarkerKind::kSquare, Paint::kDarkGrey});
  return legend;
}

}  // namespace

Plane measured_front(const std::vector<ComparedPoint>& points,
                     const std::optional<Bytes>& device_limit) {
  Plane plane{"Step time against peak memory"};
  for (const ComparedPoint& compared : points) {
    if (!measured_peak(*compared.point) || !measured_step(*compared.point)) continue;
    plane.spots.push_back(spot_of(compared));
    if (compared.is_on_front) plane.front.push_back(*plane.spots.back().measured);
  }
  if (device_limit) plane.limit = {"Device limit", *device_limit};
  plane.legend = measured_legend(plane.spots);
  return plane;
}

Plane overlaid_points(const std::vector<OverlaidPoints>& reports) {
  constexpr std::array kPaints = {Paint::kBlue,   Paint::kOrange, Paint::kTeal,
                                  Paint::kPurple, Paint::kPink,   Paint::kDarkGrey};
  Plane plane{"Step time against peak memory in several reports"};
  for (std::size_t index = 0; index < reports.size(); ++index) {
    const Paint paint = kPaints.at(index % kPaints.size());
    plane.legend.push_back({reports[index].name, MarkerKind::kCircle, paint});
    for (const ComparedPoint& compared : *reports[index].points) {
      if (!measured_peak(*compared.point) || !measured_step(*compared.point)) continue;
      Spot spot = spot_of(compared);
      spot.predicted.reset();
      spot.kind = MarkerKind::kCircle;
      spot.paint = paint;
      spot.hint = reports[index].name + "\n" + spot.hint;
      plane.spots.push_back(std::move(spot));
    }
  }
  return plane;
}

Plane searched_front(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  const Front& front = record.front;
  Plane plane{"Predicted and measured step time against peak memory"};
  for (const std::size_t index : shown) {
    const FrontPoint& point = front.points[index];
    Spot spot = spot_of(front, point, std::to_string(index), /*is_own=*/true);
    const bool is_corner = index == 0 || index == front.knee || index + 1 == front.points.size() ||
                           (record.answer && record.answer->figures.peak == point.figures.peak);
    spot.rank = is_corner ? 0 : 1;
    plane.front.push_back(*spot.predicted);
    plane.spots.push_back(std::move(spot));
  }
  for (const auto& [point, is_matched] : front.baselines) {
    plane.spots.push_back(spot_of(front, point, point.plan.policy, /*is_own=*/false));
    plane.spots.back().rank = 2;
  }
  // Shows the budget if there is one, and otherwise the device's memory.
  if (record.budget) {
    plane.limit = {"Budget", *record.budget};
  } else if (record.device_memory) {
    plane.limit = {record.reserve ? "Device minus reserve" : "Device limit",
                   *record.memory_for_tensors()};
  }
  plane.legend = searched_legend(record, plane.spots);
  return plane;
}

namespace {

// Returns the number of layers in text such as "0, 2, 13-31".
double num_layers(const LayerRun& run) {
  double number = 0;
  for (std::size_t at = 0; at < run.layers.size();) {
    const std::size_t comma = std::min(run.layers.find(',', at), run.layers.size());
    const std::string range = run.layers.substr(at, comma - at);
    const std::size_t dash = range.find('-');
    const double first = std::atof(range.c_str());
    const double last = dash == std::string::npos ? first : std::atof(range.c_str() + dash + 1);
    number += std::max(1.0, last - first + 1);
    at = comma + 1;
  }
  return number;
}

// Returns "attention.core::attention" for "attention.core::rematch::attention", as short_saves()
// does.
std::string without_namespace(const std::string& saved) {
  const std::size_t of_op = saved.rfind("::");
  if (of_op == std::string::npos) return saved;
  const std::size_t of_scope = saved.rfind("::", of_op - 1);
  const std::string scope = of_scope == std::string::npos ? "" : saved.substr(0, of_scope + 2);
  return scope + saved.substr(of_op + 2);
}

// Returns text such as "keep attention.core::attention" for the ops that a group of layers keeps.
std::string kept_words(const std::vector<std::string>& saves) {
  std::vector<std::string> names;
  for (const std::string& saved : saves) names.push_back(without_namespace(saved));
  return "keep " + joined(names);
}

constexpr const char* kCheaper = "other ops";

// Returns a description of a saved op: "attention", "matmuls of ffn" for "+1.ffn.gate::aten::mm#2",
// or "other ops" for an op that is cheap to recompute.
std::string role_of(std::string_view saved) {
  const std::size_t colons = saved.find("::");
  if (colons == std::string_view::npos) return kCheaper;
  std::string_view scope = saved.substr(0, colons);
  std::string_view op = saved.substr(colons + 2);
  op = op.substr(0, op.find('#'));
  if (scope.starts_with('+')) {  // in a region of several layers, "+1." names the layer
    const std::size_t dot = scope.find('.');
    scope.remove_prefix(dot == std::string_view::npos ? scope.size() : dot + 1);
  }
  const OpClass op_class = op_class_of(op);
  if (op_class == OpClass::kAttentionForward) return "attention";
  if (op_class != OpClass::kMatmul) return kCheaper;
  const std::string module(scope.substr(0, scope.find('.')));
  return module.empty() ? "matmuls" : "matmuls of " + module;
}

// Returns text such as "attention, matmuls of ffn", or "other ops" if only cheap ops are kept.
std::string roles_of(const std::vector<std::string>& saves) {
  std::set<std::string> roles;
  for (const std::string& saved : saves) roles.insert(role_of(saved));
  if (roles.size() > 1) roles.erase(kCheaper);
  return joined(std::vector<std::string>(roles.begin(), roles.end()));
}

// Assigns a colour to each set of kept ops, in the order in which the sets appear.
class Treatments {
 public:
  Paint paint_of(const LayerRun& run) {
    if (!run.is_checkpointed) return note("Keep all", Paint::kBlue);
    if (run.saves.empty()) return note("Recompute all", Paint::kLightGrey);
    const std::string roles = roles_of(run.saves);
    if (roles == kCheaper) return note("Keep only other ops", kCheap);
    const auto [found, is_new] = paints_.try_emplace(roles, kOther);
    if (is_new && next_ < kPaints.size()) found->second = kPaints.at(next_++);
    return note(found->second == kOther ? "Keep other sets of ops" : "Keep " + roles,
                found->second);
  }
  std::vector<Key> legend() && { return std::move(legend_); }

 private:
  static constexpr Paint kCheap = Paint::kGrey;
  static constexpr Paint kOther = Paint::kDarkGrey;
  static constexpr std::array kPaints = {Paint::kTeal, Paint::kOrange, Paint::kPurple,
                                         Paint::kYellow, Paint::kPink};

  Paint note(const std::string& words, Paint paint) {
    const bool is_known = std::any_of(legend_.begin(), legend_.end(),
                                      [&](const Key& key) { return key.fill == paint; });
    if (!is_known) legend_.push_back({words, MarkerKind::kSquare, paint});
    return paint;
  }

  std::map<std::string, Paint> paints_;  // keyed by the result of roles_of()
  std::size_t next_ = 0;
  std::vector<Key> legend_;
};

}  // namespace

Rows kept_layers(const FrontRecord& record, const std::vector<std::size_t>& shown) {
  Rows chart{"What each point keeps",
             "One strip per point, the first layer on the left. The colour of a layer shows which "
             "costly ops it keeps.",
             "Layers"};
  Treatments treatments;
  for (const std::size_t index : shown) {
    const FrontPoint& point = record.front.points[index];
    Row row{std::to_string(index), "", format_bytes(point.figures.peak), short_saves(point)};
    row.is_bold = index == record.front.knee;
    for (const LayerRun& run : point.layers) {
      std::string hint = "layers " + run.layers + ": " +
                         (!run.is_checkpointed ? "keep all"
                          : run.saves.empty()  ? "recompute all"
                                               : kept_words(run.saves));
      if (!run.regions.empty()) hint += "; regions " + joined(run.regions);
      row.segments.push_back({num_layers(run), treatments.paint_of(run), std::move(hint)});
    }
    chart.rows.push_back(std::move(row));
  }
  chart.legend = std::move(treatments).legend();
  return chart;
}

}  // namespace rematch::chart
