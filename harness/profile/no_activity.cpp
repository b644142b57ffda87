#include "harness/profile/activity.h"
#include "harness/profile/nvtx_marker.h"

namespace rematch {

std::unique_ptr<ActivityRecorder> record_activity() {
  throw ActivityError("this build has no CUDA; build preset cuda");
}

NvtxFunctions nvtx_functions() {
  return {[](const char*) {}, [] {}, [](const char*) { return std::uint64_t{0}; },
          [](std::uint64_t) {}};
}

}  // namespace rematch
