// The exit codes of the process. Never a count.
#pragma once

#include <stdexcept>

namespace rematch {

enum class ExitCode : int {
  kOk = 0,
  kToolError = 1,
  kUsage = 2,
  kGateFailed = 3,  // or a budget that cannot be met, or bits that differ from the reference's
  kInconclusive = 4,
  kSomePointsFailed = 5,  // finished; out of memory, time-out, crash, not finite
  kFingerprintMismatch = 6,
  kFirstSignal = 128,  // plus the signal's number
};

// The command line, or a file it names, cannot be used. One line: the value, what is allowed, what
// to do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
