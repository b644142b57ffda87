// Names ops for tools that read NVTX (Nsight Systems), such as "recompute blocks.3 aten::mm".
// Regions and phases are ranges around the ops. Costs almost nothing without such a tool. Needs no
// CUDA header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/profile/activity.h"

namespace rematch {

struct NvtxFunctions {
  // These two functions open and close a range of the calling thread.
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
  // These two functions open and close a range of the process. Such a range may end on another
  // thread and does not nest.
  std::uint64_t (*start)(const char* name) = nullptr;
  void (*end)(std::uint64_t range) = nullptr;
};

// Returns NVTX's own functions in programs linked with CUDA. Without an attached tool these
// functions have no effect.
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
  // A phase is a range of the process, because autograd's threads launch backward's kernels while
  // the thread of the step waits.
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
