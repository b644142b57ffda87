#include "harness/profile/nvtx_marker.h"

#include <nvtx3/nvToolsExt.h>

namespace rematch {

void NvtxMarker::begin(std::uint64_t, const std::string& name) { nvtxRangePushA(name.c_str()); }
void NvtxMarker::end() { nvtxRangePop(); }

}  // namespace rematch
