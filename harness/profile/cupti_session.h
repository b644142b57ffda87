// Records what a CUDA device does, by CUPTI's activity records, while it lives. Counts and kernel
// times come from here and from nowhere else. Costs time and device memory, so times and peaks are
// measured without it.
#pragma once

#include <memory>
#include <stdexcept>

#include "harness/profile/activity.h"
#include "harness/profile/launch_marker.h"

namespace rematch {

struct CuptiFunctions;

// Activity cannot be recorded, or no longer be trusted. The message says what to do.
struct CuptiError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// CUPTI's buffer callbacks carry no user pointer, so a process has one session at a time; a second
// one throws. Start it before the warm-up: the first one of a process may take seconds.
class CuptiSession final : public LaunchMarker {
 public:
  // Starts recording. Throws CuptiError if CUPTI is of another version than this was compiled for,
  // has another subscriber (nsys, ncu, a sanitizer, a profiler), or is refused by the driver.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession() override;  // stops recording; discards what finish() did not collect
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // What the calling thread launches until end() is linked to the op call. Both nest.
  void begin(std::uint64_t op_call, const std::string& name) override;
  void end() override;

  // Forgets what was recorded so far. Synchronize the device first, and mark nothing meanwhile.
  void discard();

  // Stops and hands over the records, lost ones counted. Call once, after synchronizing the
  // device: a kernel that is still running has no end. Throws CuptiError.
  Activity finish();

 private:
  struct Recorder;  // keeps cupti.h out of this header
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace rematch
