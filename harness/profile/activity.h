// The activity of a device, as plain data. CuptiSession, a test or a recorded file fills it.
// Nothing here depends on CUPTI.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// One kernel that ran. Times are on the device's clock. A start of 0 means that the record had no
// time stamp.
struct KernelActivity {
  std::string symbol;  // mangled name, exactly as the driver gives it
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;  // identifies the call that launched the kernel
};

// A memcpy or memset.
struct TransferActivity {
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;
  Bytes bytes;
};

// A call that launched a kernel. The call is recorded separately from the kernel. If the kernel's
// record is missing, this record still shows that the kernel was launched.
struct LaunchCall {
  // Start and end of the call, on the device's clock.
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
};

// The value of LaunchLink::op_call for launches that make a step's input. Making the input is not
// an op of the step.
inline constexpr std::uint64_t kBatchOfStep = ~std::uint64_t{0};
// The value of LaunchLink::op_call for a plan's offload copies.
inline constexpr std::uint64_t kOffloadOfPlan = kBatchOfStep - 1;

// Links a launching call to the innermost op call of its thread at that time.
struct LaunchLink {
  std::uint32_t correlation = 0;
  std::uint64_t op_call = 0;  // 1 + index of the op call, kBatchOfStep or kOffloadOfPlan
};

struct Activity {
  std::vector<KernelActivity> kernels;
  std::vector<TransferActivity> transfers;
  std::vector<LaunchLink> links;
  std::vector<LaunchCall> launches;
  std::int64_t dropped = 0;  // records lost because buffers ran out
  std::int64_t unfinished =
      0;  // kernels and transfers that had not ended; not listed in `kernels` and `transfers`
};

// Marks the op, region and phase to which later launches belong.
class LaunchMarker {
 public:
  virtual ~LaunchMarker() = default;
  // `op_call` has the meaning of LaunchLink::op_call. Tools display `name`, such as "forward
  // blocks.3 aten::mm". Calls nest per thread. Each begin() is followed by an end() unless an op
  // throws.
  virtual void begin(std::uint64_t op_call, const std::string& name) = 0;
  virtual void end() = 0;

  // begin_region() and end_region() surround a region's forward, or a part of its recompute, on the
  // thread that runs it. `name` is, for example, "recompute region blocks.3". Regions and calls
  // nest.
  virtual void begin_region(const std::string& /*name*/) {}
  virtual void end_region() noexcept {}

  // begin_phase() and end_phase() surround a phase of the step, with its calls on all threads.
  // begin_phase() ends the previous phase.
  virtual void begin_phase(const std::string& /*name*/) {}
  virtual void end_phase() noexcept {}
};

// Thrown if activity cannot be recorded or can no longer be trusted. The message says what to do.
struct ActivityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Records what a CUDA device does while this object lives. Uses CUPTI in programs linked with CUDA;
// other programs cannot record (no_activity.cpp). Recording costs time and device memory, so times
// and peaks are measured without it.
class ActivityRecorder : public LaunchMarker {
 public:
  // Drops all records so far. Synchronize the device first. Do not mark op calls, regions or phases
  // during this call.
  virtual void discard() = 0;

  // Stops recording and returns the records. Lost records are counted. Call this once.
  // Synchronize the device first, because kernels that are still running are not returned. Throws
  // ActivityError.
  virtual Activity finish() = 0;
};

// Starts recording. A process has one recorder at a time. Throws ActivityError.
std::unique_ptr<ActivityRecorder> record_activity();

// Returns "ok" if kernels can be counted on this machine, and otherwise the reason why not. Starts
// a session to find out.
inline std::string kernel_counting_state() {
  try {
    record_activity();
    return "ok";
  } catch (const ActivityError& error) {
    return error.what();
  }
}

}  // namespace rematch
