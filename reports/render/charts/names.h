// Names beside the markers of a chart. One that has no room there at either size of text, or would
// have to be cut, is an entry of the legend under a letter that stands at its marker: no point is
// without a name.
#pragma once

#include <optional>
#include <vector>

#include "reports/render/charts/svg.h"

namespace rematch::chart {

struct Name {
  Label label;
  Position at;  // its marker's middle
};

struct NamePlaces {
  Box area;              // names stay inside
  double clearance = 0;  // from a marker's middle to its name
  double longest = 0;    // width of a name beside its marker
};

// In this order. Call it when the picture has all its shapes: names cover none of them.
void add_names(Picture& picture, const std::vector<Name>& names, const NamePlaces& places);

// The label beside a marker at `at`, at one of sixteen places, where it covers none of `obstacles`
// and stays in `bounds`; nothing if there is no such place.
std::optional<Label> place_label(Label label, Position at, double clearance, double growth,
                                 const std::vector<Box>& obstacles, const Box& bounds);

}  // namespace rematch::chart
