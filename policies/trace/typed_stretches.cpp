#include "policies/trace/typed_stretches.h"

#include <algorithm>

namespace rematch {

std::vector<TypedStretch> forward_stretches(const SegmentedTrace& segmented) {
  std::vector<TypedStretch> stretches;
  std::size_t first = 0;
  for (const Segment& segment : segmented.segments) {
    const auto length = segmented.types[static_cast<std::size_t>(segment.type)].ops.size();
    stretches.push_back({segment.type, first, length});
    first += length;
  }
  return stretches;
}

std::vector<TypedStretch> backward_stretches(const SegmentedTrace& segmented) {
  std::vector<TypedStretch> stretches;
  std::size_t first = 0;
  for (const BackwardRun& run : segmented.backward) {
    const auto& events = segmented.backward_types[static_cast<std::size_t>(run.type)];
    const auto length = static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(),
        [](const BackwardEvent& event) { return event.kind == BackwardEvent::Kind::kOp; }));
    stretches.push_back({run.type, first, length});
    first += length;
  }
  return stretches;
}

}  // namespace rematch
