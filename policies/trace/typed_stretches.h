// The ops of a pass by the stretches that a trace is cut into (segments.h). Stretches of one type
// do the same.
#pragma once

#include <cstddef>
#include <vector>

#include "policies/trace/segments.h"

namespace rematch {

// Ops [first, first + length) of forward, or of the ops of backward.
struct TypedStretch {
  int type = 0;
  std::size_t first = 0;
  std::size_t length = 0;
};

std::vector<TypedStretch> forward_stretches(const SegmentedTrace& segmented);
std::vector<TypedStretch> backward_stretches(const SegmentedTrace& segmented);

}  // namespace rematch
