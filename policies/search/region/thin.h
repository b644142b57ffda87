// Fewer labels where there are too many, and what that costs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rematch {

// Keeps every second label and the last, so that for each that goes a smaller one stays. `labels`
// are by size ascending, their `time` (nanoseconds) descending. Returns the most time that this
// costs.
template <class Label>
std::int64_t thin(std::vector<Label>& labels, std::int64_t Label::*time) {
  std::int64_t gap = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i % 2 == 0 || i + 1 == labels.size()) {
      labels[kept++] = labels[i];
    } else {
      gap = std::max(gap, labels[kept - 1].*time - labels[i].*time);
    }
  }
  labels.resize(kept);
  return gap;
}

}  // namespace rematch
