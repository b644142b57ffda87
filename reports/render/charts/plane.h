// The grammar of fronts: peak bytes across, step time upwards, a marker a spot, the steps of the
// front, and a memory limit. Knows nothing of points and reports.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

// Positions of a spot are in bytes and nanoseconds.
struct Spot {
  std::optional<Position> predicted;  // a hollow marker, joined to the measured one
  std::optional<Position> measured;
  std::optional<std::array<double, 2>> interval;  // of the measured step time
  MarkerKind kind = MarkerKind::kCircle;
  Paint paint = Paint::kBlue;
  bool is_crossed = false;
  std::string name;
  Paint name_paint = Paint::kInk;
  bool is_bold = false;
  int rank = 0;  // lower ones get room for their names first, and lie above the others
  std::string hint;

  const Position& at() const { return measured ? *measured : *predicted; }
};

struct Limit {
  std::string name;  // "Device limit"
  Bytes bytes;
};

struct Plane {
  std::string title;
  std::vector<Spot> spots;
  std::vector<Position> front;  // corners of its steps, in bytes and nanoseconds
  std::optional<Limit> limit;   // a line where it is near the spots; the legend has its words
  std::vector<Key> legend;

  bool is_empty() const { return spots.empty(); }
};

Picture draw(const Plane& chart);

// Many small fronts on shared axes: peak and step time, each over the reference's, so that shapes
// of any size can be held against each other.

// Positions are ratios: of the peak, and of the step time.
struct FrontSpot {
  Position at;
  std::string name;
  std::string hint;
  bool is_on_front = false;
};

struct FrontPanel {
  std::string name;   // in bold above the panel
  std::string words;  // a line below the name
  std::vector<FrontSpot> spots;
};

struct FrontPanels {
  std::string title;
  std::vector<FrontPanel> panels;
  Range peaks;  // of all panels that are to be held against each other, shown or not
  Range steps;
};

// A picture of each panel, all with the same axes.
std::vector<Picture> draw(const FrontPanels& chart);

}  // namespace rematch::chart
