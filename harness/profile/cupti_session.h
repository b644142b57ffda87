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
// second session throws. Start the session before the warm-up, because the first session of a
// process may take seconds to start.
class CuptiSession final : public ActivityRecorder {
 public:
  // Starts recording. Throws CuptiError in three cases: CUPTI's version is not the
  // version that this code was compiled for, CUPTI has another subscriber (nsys, ncu, a sanitizer,
  // a profiler), or the driver rejects it.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession() override;  // stops recording and drops what finish() did not collect
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // Links everything that the calling thread launches until end() to the op call. Calls nest.
  void begin(std::uint64_t op_call, const std::string& name) override;
  void end() override;

  void discard() override;
  Activity finish() override;

 private:
  struct Recorder;  // keeps cupti.h out of this header
  // Shared with CUPTI's threads, which deliver buffers.
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace rematch
