// Names ops for whatever listens to NVTX (Nsight Systems): "recompute blocks.3 aten::mm", the names
// that reports use. Costs next to nothing where nobody listens.
#pragma once

#include "harness/profile/launch_marker.h"

namespace rematch {

class NvtxMarker final : public LaunchMarker {
 public:
  void begin(std::uint64_t op_call, const std::string& name) override;
  void end() override;
};

}  // namespace rematch
