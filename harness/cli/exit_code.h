// The exit codes of the process. They do not depend on the number of failures.
#pragma once

#include <stdexcept>

namespace rematch {

enum class ExitCode : int {
  kOk = 0,
  kToolError = 1,
  kUsage = 2,
  kGateFailed = 3,  // also used if a budget cannot be met, or if bits differ from the reference's
  kInconclusive = 4,
  // The run finished, but some points ran out of memory, timed out, crashed or had a loss that is
  // not finite.
  kSomePointsFailed = 5,
  kFingerprintMismatch = 6,
  kFirstSignal = 128,  // after a signal, the exit code is this number plus the signal's number
};

// Thrown if the command line, or a file that it names, cannot be used. The message is one line: the
// value, what is allowed, and what to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
