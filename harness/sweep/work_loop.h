// The loop of a worker, until nothing is left for it: it takes the longest free comparison that
// fits into its time, has it measured, looks again. Any number of workers do it at once, knowing
// nothing of each other but the claims.
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
  std::string comparison;                              // id
  std::optional<std::chrono::milliseconds> predicted;  // absent: it fits while there is time at all
  bool fits_card = true;                               // of this worker
};

// How one comparison in this worker's hands ended; its claim says the same.
enum class MeasureEnd : std::uint8_t {
  kOk,
  kSomePointsFailed,
  kFailed,
  kSkipped,
  kStopped,     // told to, or time is up: released
  kSuperseded,  // another worker has it
};

class Measurer {
 public:
  Measurer() = default;
  virtual ~Measurer() = default;
  Measurer(const Measurer&) = delete;
  Measurer& operator=(const Measurer&) = delete;

  // To be held while measuring, where comparisons would disturb each other. Null: another worker of
  // this machine has it.
  virtual std::shared_ptr<void> turn() = 0;
  // Beats, and says the claim's end. Throws FileError where that cannot be written.
  virtual MeasureEnd measure(std::size_t item, HeldClaim& claim) = 0;
};

enum class Told : std::uint8_t { kNothing, kTimeIsUp, kStop };

struct WorkSurroundings {
  std::function<std::chrono::nanoseconds()> now;
  std::function<void(std::chrono::milliseconds)> sleep;  // returns early when told
  std::function<Told()> told;
};

struct WorkLimits {
  std::optional<std::chrono::nanoseconds> end;  // of `now`
  std::chrono::milliseconds look_every = std::chrono::seconds(1);
  bool retries_failed = false;  // tries once more what had failed before its first look
};

struct WorkEnd {
  enum class Why : std::uint8_t { kNothingLeft, kInOtherHands, kTimeIsUp, kStopped };
  Why why = Why::kNothingLeft;
  int num_measured = 0;  // by this worker, whatever came of it
  int num_failures = 0;  // among them, and what others failed at
  int num_left = 0;      // in other hands, or too long for what is left of the time
};

// Throws FileError where the folder stays unusable, and what Claims::look throws.
WorkEnd work(const std::vector<WorkItem>& items, Claims& claims, Measurer& measurer,
             const WorkSurroundings& surroundings, const WorkLimits& limits);

}  // namespace rematch
