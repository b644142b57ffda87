#include <nvtx3/nvToolsExt.h>

#include "harness/profile/nvtx_marker.h"

namespace rematch {

NvtxFunctions nvtx_functions() {
  return {[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }};
}

}  // namespace rematch
