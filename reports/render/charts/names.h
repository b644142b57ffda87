// Writes names beside the markers of a chart. If a name does not fit beside its marker, writes a
// letter there and puts the name into the legend. So every point is named.
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

// Places names in the given order. Call it once the picture has all its shapes, because names must
// not cover them.
void add_names(Picture& picture, const std::vector<Name>& names, const NamePlaces& places);

// Returns the label next to a marker at `at`, at the first of sixteen places where it covers none
// of `obstacles` and stays in `bounds`. Absent if no place fits.
std::optional<Label> place_label(Label label, Position at, double clearance, double growth,
                                 const std::vector<Box>& obstacles, const Box& bounds);

}  // namespace rematch::chart
