// Draws panels over the steps of a training run or the ops of one step: curves, areas, and a strip
// below them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/axis.h"
#include "reports/render/charts/svg.h"

namespace rematch::chart {

struct Sample {
  std::optional<double> y;  // absent for a gap in the curve, which a cross on the x axis marks
  std::string hint;
};

// A curve over x = 0, 1, 2 and so on.
struct Curve {
  std::vector<Sample> samples;
  Paint paint = Paint::kBlue;
  std::string hint;
};

struct Area {
  std::vector<Position> corners;
  Paint fill = Paint::kGrid;
  Paint stroke = Paint::kClear;
  std::string hint;
};

// A part of the strip below a plot.
struct Stretch {
  double from = 0;
  double to = 0;
  Paint fill = Paint::kGrey;
  std::string hint;
};

struct Peak {
  Position at;
  std::string hint;
};

struct Panel {
  std::string name;   // in bold above the panel; may be empty
  std::string note;   // text next to the name, in grey
  std::string words;  // a line of text below the name
  std::string hint;
  std::string x_title;
  std::string y_title;  // title of the y axis; the unit is added
  Quantity quantity = Quantity::kNumber;
  std::optional<double> at_least;  // the y axis includes 0 and at least this value
  double height = 118;             // height of the plot
  std::vector<Area> areas;         // later areas cover earlier areas
  std::vector<Curve> curves;       // earlier curves cover later curves
  std::vector<Stretch> strip;
  std::optional<Peak> peak;
};

struct Lines {
  std::string title;
  std::string words;  // a sentence that a page shows with the chart
  std::vector<Panel> panels;
  std::vector<Key> legend;
  int num_columns = 1;

  bool is_empty() const { return panels.empty(); }
};

// Draws two lines of text above a panel: its name with its note, and its `words`.
void draw_head(Picture& picture, const Panel& panel, const Box& frame);
inline constexpr double kHead = 34;  // height of these two lines

// Draws the panels side by side in num_columns columns. Panels of one column share their x
// positions.
Picture draw(const Lines& chart);

}  // namespace rematch::chart
