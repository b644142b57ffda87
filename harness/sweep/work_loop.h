// The loop of a worker. It takes the longest free comparison that fits into the worker's time,
// measures it, and looks for the next, until no comparison is left. Any number of workers run this
// loop at once. Workers know each other only through the claims.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/claims.h"

namespace rematch {

struct WorkItem {
  std::string comparison;  // id of the comparison
  std::optional<std::chrono::milliseconds>
      predicted;          // if absent, the comparison may start while any time is left
  bool fits_card = true;  // whether the comparison fits this worker's card
};

// The result of a comparison that this worker held. The worker also writes the result to the claim.
enum class MeasureEnd : std::uint8_t {
  kOk,
  kSomePointsFailed,
  kFailed,
  kSkipped,
  kStopped,     // the worker was told to stop, or its time is up; the claim was released
  kSuperseded,  // another worker has taken the comparison
};

class Measurer {
 public:
  Measurer() = default;
  virtual ~Measurer() = default;
  Measurer(const Measurer&) = delete;
  Measurer& operator=(const Measurer&) = delete;

  // Acquires the lock for measuring, if comparisons of several workers would disturb each other.
  // Destroying the result releases the lock. Null if another worker of this machine holds the lock.
  virtual std::shared_ptr<void> turn() = 0;
  // Measures a comparison. Writes heartbeats to the claim and, at the end, its final state. Throws
  // FileError if the final state cannot be written.
  virtual MeasureEnd measure(std::size_t item, HeldClaim& claim) = 0;
};

enum class StopRequest : std::uint8_t { kNone, kDeadline, kStop };

struct WorkSurroundings {
  std::function<std::chrono::nanoseconds()> now;
  std::function<void(std::chrono::milliseconds)>
      sleep;  // returns early if the worker is told to stop
  std::function<StopRequest()> stop_request;
};

struct WorkLimits {
  std::optional<std::chrono::nanoseconds> end;  // time limit, on the clock of `now`
  std::chrono::milliseconds look_every = std::chrono::seconds(1);
  // Whether to retry, once each, the comparisons that had failed when the worker started.
  bool retries_failed = false;
};

struct WorkEnd {
  enum class Why : std::uint8_t { kNothingLeft, kInOtherHands, kDeadline, kStopped };
  Why why = Why::kNothingLeft;
  int num_measured = 0;  // comparisons measured by this worker, with any result
  int num_failures = 0;  // failed comparisons of this worker and of other workers
  int num_left =
      0;  // comparisons that other workers hold, or that are too long for the remaining time
};

// Throws FileError if the folder stays unusable. Throws what Claims::look() throws.
WorkEnd work(const std::vector<WorkItem>& items, Claims& claims, Measurer& measurer,
             const WorkSurroundings& surroundings, const WorkLimits& limits);

}  // namespace rematch
