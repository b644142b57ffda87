#include <nvtx3/nvToolsExt.h>

#include "harness/profile/nvtx_marker.h"

namespace rematch {

NvtxFunctions nvtx_functions() {
  return {[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); },
          [](const char* name) -> std::uint64_t { return nvtxRangeStartA(name); },
          [](std::uint64_t range) { nvtxRangeEnd(range); }};
}

}  // namespace rematch
