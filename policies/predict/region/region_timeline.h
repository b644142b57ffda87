// Bytes of a region in backward at every op boundary, and when it frees what forward made:
// what a simulation of the whole step needs of it. Regions of the same behaviour under the same
// plan share one.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

struct RegionTimeline {
  // An op boundary of recompute, or a storage that forward made and the region lets go of.
  struct Step {
    OptionalIndex let_go;  // local storage; absent: a boundary
    int op = 0;            // local, of a boundary
    Bytes recomputed;      // of a boundary: bytes that the region holds and recompute made
  };
  // The region's slots as backward asks for them and lets go of them, in order.
  struct Event {
    std::size_t end_step = 0;  // its steps end here and begin where those before it end
    Bytes recomputed;          // held when it is over
  };

  std::vector<int> kept;  // local storages that the region holds from forward on
  std::vector<Step> steps;
  std::vector<Event> events;
  bool ends = false;  // with the last event nothing refers to the region any more
};

}  // namespace rematch
