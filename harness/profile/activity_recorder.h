// Records what a CUDA device does while it lives: by CUPTI in programs that are linked with CUDA,
// and not at all in others (no_activity.cpp). Costs time and device memory, so times and peaks are
// measured without it.
#pragma once

#include <memory>
#include <stdexcept>

#include "harness/profile/activity.h"
#include "harness/profile/launch_marker.h"

namespace rematch {

// Activity cannot be recorded, or no longer be trusted. The message says what to do.
struct ActivityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ActivityRecorder : public LaunchMarker {
 public:
  // Forgets what was recorded so far. Synchronize the device first, and mark nothing meanwhile.
  virtual void discard() = 0;

  // Stops and hands over the records, lost ones counted. Call once, after synchronizing the
  // device: a kernel that is still running has no end. Throws ActivityError.
  virtual Activity finish() = 0;
};

// Starts to record; one recorder at a time in a process. Throws ActivityError.
std::unique_ptr<ActivityRecorder> record_activity();

}  // namespace rematch
