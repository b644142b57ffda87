// Drops about half of the labels of a dynamic program. Returns how much slower a solution can
// become because of the dropped labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rematch {

// Keeps every second label and the last one. `labels` must be sorted by ascending size, with
// descending `time` in nanoseconds. Returns the largest time lost by replacing a dropped label with
// the smaller label before it.
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
