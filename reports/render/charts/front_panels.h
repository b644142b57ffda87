// The grammar of many small fronts on shared axes: peak and step time, each over the reference's,
// so that shapes of any size can be held against each other. Knows nothing of points and reports.
#pragma once

#include <string>
#include <vector>

#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

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
  std::vector<Key> legend;
};

// A picture of each panel, all with the same axes.
std::vector<Picture> draw(const FrontPanels& chart);

}  // namespace rematch::chart
