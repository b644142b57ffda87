// Records what a CUDA device does, from CUPTI's activity records. All kernel counts and kernel
// times come from here.
#pragma once

#include <memory>
#include <string>

#include "harness/profile/activity.h"

namespace rematch {

struct CuptiFunctions;

struct CuptiError : ActivityError {
  using ActivityError::ActivityError;
};

// A process has one session at a time, because CUPTI's buffer callbacks carry no user pointer. A
// second session throws. Start it before the warm-up, because the first session of a process may
// take seconds.
class CuptiSession final : public ActivityRecorder {
 public:
  // Starts recording. Throws CuptiError if CUPTI has another version than this was compiled for,
  // has another subscriber (nsys, ncu, a sanitizer, a profiler), or is rejected by the driver.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession() override;  // stops recording; discards what finish() did not collect
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // Links everything that the calling thread launches until end() to the op call. Calls nest.
  void begin(std::uint64_t op_call, const std::string& name) override;
  void end() override;

  void discard() override;
  Activity finish() override;

 private:
  struct Recorder;  // keeps cupti.h out of this header
  // Shared with CUPTI's threads that deliver a buffer.
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace rematch
