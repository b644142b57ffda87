// Activity of a device, as plain data: filled by CuptiSession, by tests, or from a recorded file.
// Nothing here knows CUPTI.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

// One kernel that ran. Times are the device's clock; 0 as a start means that there was no stamp.
struct KernelActivity {
  std::string symbol;  // as the driver has it, mangled
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;  // of the call that launched it
};

// A memcpy or memset.
struct TransferActivity {
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  std::uint32_t correlation = 0;
  Bytes bytes;
};

// A call that gave the device a kernel, by its own record: so a kernel without a record is missed.
struct LaunchCall {
  std::chrono::nanoseconds start{};  // of the call, on the device's clock
  std::chrono::nanoseconds end{};
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
};

// Stands for an op call where a step's input is made, which is no op of the step.
inline constexpr std::uint64_t kBatchOfStep = ~std::uint64_t{0};
// Stands for an op call where a plan's copies between device and host are started.
inline constexpr std::uint64_t kOffloadOfPlan = kBatchOfStep - 1;

// The launching call happened while this op call was the innermost of its thread.
struct LaunchLink {
  std::uint32_t correlation = 0;
  std::uint64_t op_call = 0;  // 1 + index of the op call, kBatchOfStep or kOffloadOfPlan
};

struct Activity {
  std::vector<KernelActivity> kernels;
  std::vector<TransferActivity> transfers;
  std::vector<LaunchLink> links;
  std::vector<LaunchCall> launches;
  std::int64_t dropped = 0;     // records that were lost for want of buffers
  std::int64_t unfinished = 0;  // kernels and transfers that had not ended; they are left out
};

// Who marks, on the thread that launches, which op call its launches belong to, and in which region
// and phase it is.

class LaunchMarker {
 public:
  virtual ~LaunchMarker() = default;
  // `op_call` is as a LaunchLink's; `name` is for people: "forward blocks.3 aten::mm". Calls nest,
  // per thread; each begin() is followed by an end() unless an op throws.
  virtual void begin(std::uint64_t op_call, const std::string& name) = 0;
  virtual void end() = 0;

  // Around the calls of a region's forward, or of a stretch of its recompute, on their thread:
  // "recompute region blocks.3". They nest with the calls.
  virtual void begin_region(const std::string& /*name*/) {}
  virtual void end_region() noexcept {}

  // Around all calls of a step's phase, on whatever threads they are. begin_phase() ends the phase
  // before.
  virtual void begin_phase(const std::string& /*name*/) {}
  virtual void end_phase() noexcept {}
};

// Records what a CUDA device does while it lives: by CUPTI in programs that are linked with CUDA,
// and not at all in others (no_activity.cpp). Costs time and device memory, so times and peaks are
// measured without it.

// Activity cannot be recorded, or no longer be trusted. The message says what to do.
struct ActivityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ActivityRecorder : public LaunchMarker {
 public:
  // Forgets what was recorded so far. Synchronize the device first, and mark nothing meanwhile.
  virtual void discard() = 0;

  // Stops and hands over the records, lost ones counted. Call once, after synchronizing the
  // device: a kernel that still runs is left out as unfinished. Throws ActivityError.
  virtual Activity finish() = 0;
};

// Starts to record; one recorder at a time in a process. Throws ActivityError.
std::unique_ptr<ActivityRecorder> record_activity();

// "ok" if kernels can be counted here, or why not: no CUDA in this build, no CUPTI, one of another
// version, a driver that refuses, another tool that records. Starts a session to find out.
inline std::string kernel_counting_state() {
  try {
    record_activity();
    return "ok";
  } catch (const ActivityError& error) {
    return error.what();
  }
}

}  // namespace rematch
