// Names ops for whatever listens to NVTX (Nsight Systems): "recompute blocks.3 aten::mm", the names
// that reports use. Costs next to nothing where nobody listens. Needs no CUDA header itself.
#pragma once

#include "harness/profile/launch_marker.h"

namespace rematch {

// What opens and closes a range of the calling thread.
struct NvtxFunctions {
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
};

// NVTX's own in programs that are linked with CUDA. Without a tool attached they do nothing.
NvtxFunctions nvtx_functions();

class NvtxMarker final : public LaunchMarker {
 public:
  explicit NvtxMarker(NvtxFunctions functions) : functions_(functions) {}
  void begin(std::uint64_t, const std::string& name) override { functions_.push(name.c_str()); }
  void end() override { functions_.pop(); }

 private:
  NvtxFunctions functions_;
};

}  // namespace rematch
