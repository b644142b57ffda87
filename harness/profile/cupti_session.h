// Records what a CUDA device does, by CUPTI's activity records. Counts and kernel times come from
// here and from nowhere else.
#pragma once

#include <memory>
#include <string>

#include "harness/profile/activity.h"

namespace rematch {

struct CuptiFunctions;

struct CuptiError : ActivityError {
  using ActivityError::ActivityError;
};

// CUPTI's buffer callbacks carry no user pointer, so a process has one session at a time; a second
// one throws. Start it before the warm-up: the first one of a process may take seconds.
class CuptiSession final : public ActivityRecorder {
 public:
  // Starts recording. Throws CuptiError if CUPTI is of another version than this was compiled for,
  // has another subscriber (nsys, ncu, a sanitizer, a profiler), or is refused by the driver.
  explicit CuptiSession(const CuptiFunctions& functions);
  ~CuptiSession() override;  // stops recording; discards what finish() did not collect
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  // Links everything that the calling thread launches until end() to the op call. Both nest.
  void begin(std::uint64_t op_call, const std::string& name) override;
  void end() override;

  void discard() override;
  Activity finish() override;

 private:
  struct Recorder;  // keeps cupti.h out of this header
  // Shared with the threads of CUPTI that deliver a buffer.
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace rematch
