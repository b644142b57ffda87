// Names ops for whatever listens to NVTX (Nsight Systems): "recompute blocks.3 aten::mm", the names
// that reports use, in ranges of their regions and phases. Costs next to nothing where nobody
// listens. Needs no CUDA header itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/profile/activity.h"

namespace rematch {

struct NvtxFunctions {
  // Open and close a range of the calling thread.
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
  // Open and close a range of the process: it may end on another thread and nests in nothing.
  std::uint64_t (*start)(const char* name) = nullptr;
  void (*end)(std::uint64_t range) = nullptr;
};

// NVTX's own in programs that are linked with CUDA. Without a tool attached they do nothing.
NvtxFunctions nvtx_functions();

class NvtxMarker final : public LaunchMarker {
 public:
  explicit NvtxMarker(NvtxFunctions functions) : functions_(functions) {}
  ~NvtxMarker() override { end_phase(); }
  NvtxMarker(const NvtxMarker&) = delete;
  NvtxMarker& operator=(const NvtxMarker&) = delete;
  void begin(std::uint64_t, const std::string& name) override { functions_.push(name.c_str()); }
  void end() override { functions_.pop(); }
  void begin_region(const std::string& name) override { functions_.push(name.c_str()); }
  void end_region() noexcept override { functions_.pop(); }
  // Backward's kernels are launched by autograd's threads while the thread of the step waits.
  void begin_phase(const std::string& name) override {
    end_phase();
    phase_ = functions_.start(name.c_str());
  }
  void end_phase() noexcept override {
    if (phase_) functions_.end(*phase_);
    phase_.reset();
  }

 private:
  NvtxFunctions functions_;
  std::optional<std::uint64_t> phase_;
};

}  // namespace rematch
