// Where labels of points go so that none covers another, a point or the edge.
#pragma once

#include <optional>
#include <vector>

#include "reports/render/svg.h"

namespace rematch {

struct LabelRequest {
  Position point;
  double clearance = 0;  // from the point to the text
  double width = 0;
  double height = 0;
};

// The box of each label, first come first served; none where no place beside its point is free of
// `obstacles` and of other labels. Near places are taken first.
std::vector<std::optional<Box>> place_labels(const std::vector<LabelRequest>& requests,
                                             std::vector<Box> obstacles, const Box& bounds);

}  // namespace rematch
