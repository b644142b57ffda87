// The exit codes of the process. A code is never a count.
#pragma once

#include <stdexcept>

namespace rematch {

enum class ExitCode : int {
  kOk = 0,
  kToolError = 1,
  kUsage = 2,
  kGateFailed = 3,  // also: a budget cannot be met, or bits differ from the reference's
  kInconclusive = 4,
  // The run finished, but points are out of memory, timed out, crashed or not finite.
  kSomePointsFailed = 5,
  kFingerprintMismatch = 6,
  kFirstSignal = 128,  // added to the signal's number
};

// The command line, or a file it names, cannot be used. The message is one line: the value, what is
// allowed, and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
