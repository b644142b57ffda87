// Writes names beside the markers of a chart. If a name does not fit, writes a letter beside the
// marker and puts the name into the legend.
#pragma once

#include <optional>
#include <vector>

#include "reports/render/charts/svg.h"

namespace rematch::chart {

struct Name {
  Label label;
  Position at;  // the middle of the name's marker
};

struct NamePlaces {
  Box area;              // area in which names must stay
  double clearance = 0;  // distance from a marker's middle to its name
  double longest = 0;    // longest allowed width of a name beside its marker
};

// Places names in the given order. Call this after all shapes were drawn, because names must not
// cover them.
void add_names(Picture& picture, const std::vector<Name>& names, const NamePlaces& places);

// Returns a label for a marker at `at`. Tries sixteen positions, and uses the first at which the
// label covers none of `obstacles` and stays inside `bounds`. Absent if there is none.
std::optional<Label> place_label(Label label, Position at, double clearance, double growth,
                                 const std::vector<Box>& obstacles, const Box& bounds);

}  // namespace rematch::chart
