#include "reports/render/charts/plane.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "reports/render/charts/axis.h"
#include "reports/render/format.h"

namespace rematch::chart {
namespace {

constexpr double kWidth = 660;
constexpr double kHeight = 300;  // of the plot
constexpr double kTop = 28;
constexpr double kRight = 14;
constexpr double kRadius = 5;
constexpr double kSquareRadius = 4.4;
constexpr double kClearance = kRadius * kGrowth + 4;  // from a marker's middle to its name
// A limit further out than this many times the spots' peaks would squeeze them together.
constexpr double kNearLimit = 1.6;
// A share of the plot's width; longer names are cut.
constexpr double kLongestName = 0.45;
// Names beyond these would hardly find room beside their spots.
constexpr std::size_t kMostPlaced = 120;
constexpr char kFirstLetter = 'a';
constexpr std::size_t kMostLetters = 26;

struct Plot {
  Box area;
  Axis x;
  Axis y;

  Position operator()(const Position& value) const { return {x(value.x), y(value.y)}; }
};

Range peaks_of(const Plane& chart) {
  Range peaks;
  for (const Spot& spot : chart.spots) {
    for (const auto& at : {spot.predicted, spot.measured}) {
      if (at) peaks.include(at->x);
    }
  }
  return peaks;
}

Range steps_of(const Plane& chart) {
  // Medians fill the axis: intervals have half as much room again, or this share of the slowest
  // step where all steps are alike.
  constexpr double kLeastRoom = 0.02;
  double slowest = 0;
  std::vector<Estimate> steps;
  for (const Spot& spot : chart.spots) {
    if (spot.predicted)
      steps.push_back({spot.predicted->y, {spot.predicted->y, spot.predicted->y}});
    const double step = spot.at().y;
    steps.push_back({step, spot.interval.value_or(std::array{step, step})});
    slowest = std::max(slowest, step);
  }
  return range_of(steps, kLeastRoom * slowest);
}

// "far to the right"; empty if the limit is near enough for a line.
std::string far_side(const Limit& limit, const Range& peaks) {
  const auto bytes = static_cast<double>(limit.bytes.count);
  if (bytes > kNearLimit * peaks.high) return "far to the right";
  return bytes * kNearLimit < peaks.low ? "far to the left" : "";
}

Axis axis_of(Quantity quantity, const Range& range, int most_ticks) {
  const double margin = 0.04 * range.span();  // markers do not sit on the frame
  return make_axis(quantity, std::max(0.0, range.low - margin), range.high + margin, most_ticks);
}

Plot draw_frame(Picture& picture, const Range& peaks, const Range& steps) {
  const double growth = picture.growth;
  Plot plot{{}, axis_of(Quantity::kBytes, peaks, 6), axis_of(Quantity::kDuration, steps, 6)};
  plot.area = {y_labels_width(plot.y, growth), kTop, kWidth - kRight, kTop + kHeight};
  draw_y_axis(picture, plot.y, plot.area);
  draw_x_axis(picture, plot.x, plot.area, GridLines::kDrawn);
  const double bottom = plot.area.bottom;
  picture.add_line({plot.area.left, bottom}, {plot.area.right, bottom}, Paint::kAxis);
  picture.add(Label{{0, kTop - 12}, plot.y.titled("step time")});
  picture.add(Label{{plot.area.right, bottom + kTitleBelow * growth},
                    plot.x.titled("peak allocated"),
                    Anchor::kEnd});
  picture.height = bottom + (kTitleBelow + 5) * growth;
  return plot;
}

void draw_limit(Picture& picture, const Limit& limit, const Range& peaks, const Plot& plot) {
  std::string words = limit.name + " " + format_bytes(limit.bytes);
  const std::string side = far_side(limit, peaks);
  if (!side.empty()) words += ", " + side;
  picture.legend.push_back({words, MarkerKind::kSquare, Paint::kOrange});
  if (!side.empty()) return;
  const double x = plot.x(static_cast<double>(limit.bytes.count));
  picture.add(Path{{{x, plot.area.top}, {x, plot.area.bottom}},
                   Paint::kOrange,
                   Paint::kClear,
                   1.5,
                   true,
                   words});
}

// Along a step time, then down at a peak.
void draw_front(Picture& picture, std::vector<Position> corners, const Plot& plot) {
  std::sort(corners.begin(), corners.end(),
            [](const Position& a, const Position& b) { return a.x < b.x; });
  for (std::size_t next = 1; next < corners.size(); ++next) {
    const Position from = plot(corners[next - 1]);
    const Position to = plot(corners[next]);
    const Position turn{to.x, from.y};
    picture.add(Path{{from, turn}, Paint::kBlue, Paint::kClear, 1, /*is_dashed=*/true});
    picture.add(Path{{turn, to}, Paint::kBlue, Paint::kClear, 1, /*is_dashed=*/true});
  }
}

void draw_spots(Picture& picture, const std::vector<const Spot*>& spots, const Plot& plot) {
  for (const Spot* spot : spots) {
    if (spot->interval) {
      draw_interval(picture, plot.y, *spot->interval, plot.x(spot->at().x), Direction::kUpright,
                    spot->paint);
    }
    if (spot->predicted && spot->measured) {
      picture.add_line(plot(*spot->predicted), plot(*spot->measured), spot->paint);
    }
  }
  for (const Spot* spot : spots) {
    const double radius = spot->kind == MarkerKind::kCircle ? kRadius : kSquareRadius;
    if (spot->predicted) {
      picture.add(Marker{spot->kind, plot(*spot->predicted), radius, Paint::kSurface, spot->paint,
                         spot->hint});
    }
    if (spot->measured) {
      picture.add(Marker{spot->kind, plot(*spot->measured), radius, spot->paint, Paint::kSurface,
                         spot->hint});
    }
    if (spot->is_crossed) {
      picture.add(Marker{MarkerKind::kCross, plot(spot->at()), kRadius + 2.5, Paint::kClear,
                         Paint::kOrange, spot->hint});
    }
  }
}

double distance(const Position& a, const Position& b) { return std::hypot(a.x - b.x, a.y - b.y); }

struct Name {
  Label label;
  Position at;
  bool has_legend = false;
};

// In order of rank. Spots of one look at one place share a name: "nth_first(2), first_n(16)".
std::vector<Name> names_of(const std::vector<const Spot*>& spots, const Plot& plot) {
  std::vector<Name> names;
  std::map<std::tuple<double, double, Paint>, std::size_t> known;
  for (const Spot* spot : spots) {
    const Position at = plot(spot->at());
    const auto [found, is_new] = known.try_emplace({at.x, at.y, spot->name_paint}, names.size());
    if (!is_new) {
      names[found->second].label.text += ", " + spot->name;
      continue;
    }
    Label label{at, spot->name, Anchor::kStart, spot->name_paint};
    label.is_bold = spot->is_bold;
    label.has_halo = true;
    names.push_back({label, at, spot->has_legend});
  }
  return names;
}

// A name that has room only for small text is left out where text has grown.
std::optional<Label> place_name(const Picture& picture, Name name, const std::vector<Box>& boxes,
                                const Box& area) {
  name.label.text = fit_text(name.label.text, kLongestName * area.width());
  for (const double growth : {picture.growth, 1.0}) {
    name.label.is_roomy = growth != picture.growth;
    if (auto label = place_label(name.label, name.at, kClearance, growth, boxes, area)) {
      return label;
    }
  }
  return std::nullopt;
}

// Names without room, under letters that stand in the picture. Where a letter has no room either,
// the name joins the nearest one.
void draw_letters(Picture& picture, std::vector<Name> names, std::vector<Box> obstacles,
                  const Box& area) {
  std::vector<std::pair<Position, std::size_t>> placed;  // letters, and their entries of the legend
  std::vector<Name> rest;
  for (Name& name : names) {
    const std::string text = std::exchange(
        name.label.text, std::string(1, static_cast<char>(kFirstLetter + placed.size())));
    const auto label =
        placed.size() < kMostLetters ? place_name(picture, name, obstacles, area) : std::nullopt;
    if (label) {
      obstacles.push_back(extent(*label, picture.growth));
      picture.add(*label);
      placed.emplace_back(name.at, picture.legend.size());
      picture.legend.push_back(
          {text, MarkerKind::kCircle, Paint::kClear, Paint::kClear, label->text});
    } else {
      name.label.text = text;
      rest.push_back(name);
    }
  }
  for (const Name& name : rest) {
    if (placed.empty()) {
      placed.emplace_back(name.at, picture.legend.size());
      picture.legend.push_back({name.label.text});
      continue;
    }
    const auto nearest =
        std::min_element(placed.begin(), placed.end(), [&name](const auto& a, const auto& b) {
          return distance(a.first, name.at) < distance(b.first, name.at);
        });
    picture.legend[nearest->second].text += ", " + name.label.text;
  }
}

void draw_names(Picture& picture, const std::vector<Name>& names, const Box& area) {
  std::vector<Box> obstacles;
  for (const Shape& shape : picture.shapes) {
    for (const Box& box : covered_by(shape, picture.growth)) {
      obstacles.push_back({box.left - 1, box.top - 1, box.right + 1, box.bottom + 1});
    }
  }
  const std::size_t num_shapes = obstacles.size();
  std::vector<Name> left_out;
  for (const Name& name : names) {
    const bool may_fit = obstacles.size() < num_shapes + kMostPlaced;
    if (const auto label = may_fit ? place_name(picture, name, obstacles, area) : std::nullopt) {
      obstacles.push_back(extent(*label, label->is_roomy ? 1 : picture.growth));
      picture.add(*label);
    } else if (name.has_legend) {
      left_out.push_back(name);
    }
  }
  draw_letters(picture, std::move(left_out), std::move(obstacles), area);
}

}  // namespace

std::optional<Label> place_label(Label label, Position at, double clearance, double growth,
                                 const std::vector<Box>& obstacles, const Box& bounds) {
  struct Place {
    double right;
    double down;
    Anchor anchor;
    double drop;
  };
  constexpr double kDiagonal = 0.7;
  static constexpr std::array<Place, 8> kPlaces = {{
      {1, 0, Anchor::kStart, kCentered},
      {-1, 0, Anchor::kEnd, kCentered},
      {0, -1, Anchor::kMiddle, kAbove},
      {0, 1, Anchor::kMiddle, kBelow},
      {kDiagonal, -kDiagonal, Anchor::kStart, kAbove},
      {kDiagonal, kDiagonal, Anchor::kStart, kBelow},
      {-kDiagonal, -kDiagonal, Anchor::kEnd, kAbove},
      {-kDiagonal, kDiagonal, Anchor::kEnd, kBelow},
  }};
  constexpr double kFurther = 10;  // where the nearest places are taken
  for (const double distance : {clearance, clearance + kFurther}) {
    for (const auto& [right, down, anchor, drop] : kPlaces) {
      label.at = {at.x + distance * right, at.y + distance * down};
      label.anchor = anchor;
      label.drop = drop;
      const Box box = extent(label, growth);
      if (bounds.contains(box) &&
          std::none_of(obstacles.begin(), obstacles.end(),
                       [&box](const Box& other) { return other.overlaps(box); })) {
        return label;
      }
    }
  }
  return std::nullopt;
}

Picture draw(const Plane& chart) {
  Picture picture{chart.title, kWidth};
  picture.legend = chart.legend;
  picture.growth = kGrowth;
  const Range peaks = peaks_of(chart);
  Range room = peaks;
  if (chart.limit && far_side(*chart.limit, peaks).empty()) {
    room.include(static_cast<double>(chart.limit->bytes.count));
  }
  const Plot plot = draw_frame(picture, room, steps_of(chart));
  if (chart.limit) draw_limit(picture, *chart.limit, peaks, plot);
  draw_front(picture, chart.front, plot);
  std::vector<const Spot*> spots;
  for (const Spot& spot : chart.spots) spots.push_back(&spot);
  std::stable_sort(spots.begin(), spots.end(),
                   [](const Spot* a, const Spot* b) { return a->rank < b->rank; });
  const std::vector<Name> names = names_of(spots, plot);
  std::reverse(spots.begin(), spots.end());
  draw_spots(picture, spots, plot);
  draw_names(picture, names, plot.area);
  return picture;
}

}  // namespace rematch::chart
