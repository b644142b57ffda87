// Draws fronts: peak bytes on the x axis, step time on the y axis, a marker for each spot, the
// staircase of the front, and a memory limit.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

// A plan as a point of the chart. Positions are in bytes and nanoseconds.
struct Spot {
  // drawn as a hollow marker, with a line to the measured marker
  std::optional<Position> predicted;
  std::optional<Position> measured;
  std::optional<std::array<double, 2>> interval;  // interval of the measured step time
  MarkerKind kind = MarkerKind::kCircle;
  Paint paint = Paint::kBlue;
  bool is_crossed = false;
  std::string name;
  Paint name_paint = Paint::kInk;
  bool is_bold = false;
  int rank = 0;  // spots of lower rank are named first and drawn on top
  std::string hint;

  const Position& at() const { return measured ? *measured : *predicted; }
};

struct Limit {
  std::string name;  // label of the limit, such as "Device limit"
  Bytes bytes;
};

struct Plane {
  std::string title;
  std::vector<Spot> spots;
  std::vector<Position> front;  // corners of the front's staircase line, in bytes and nanoseconds
  // drawn as a line if it is near the spots, otherwise named in the legend
  std::optional<Limit> limit;
  std::vector<Key> legend;

  bool is_empty() const { return spots.empty(); }
};

Picture draw(const Plane& chart);

// A spot in one of several small charts that share their axes. Its position is in ratios to the
// reference's peak and step time, so that fronts of different sizes can be compared.
struct FrontSpot {
  Position at;
  std::string name;
  std::string hint;
  bool is_on_front = false;
};

struct FrontPanel {
  std::string name;   // in bold above the panel
  std::string words;  // a line of text below the name
  std::vector<FrontSpot> spots;
};

struct FrontPanels {
  std::string title;
  std::vector<FrontPanel> panels;
  Range peaks;  // range over all panels that share the axes, including hidden panels
  Range steps;
};

// Draws one picture per panel, all with the same axes.
std::vector<Picture> draw(const FrontPanels& chart);

}  // namespace rematch::chart
