// This process as a worker of a sweep: how others know it, what it knows of them, and what it is
// told by signals.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/sweep/claims.h"
#include "harness/sweep/work_loop.h"

namespace rematch {

// With the node's name and the task's from Slurm where it runs under it.
ClaimHolder this_worker(const std::string& plan);

// Did this process run on this very machine, and is it no more? False where it cannot be known.
bool is_process_gone(const ClaimHolder& holder);

// The system's monotonic clock.
std::chrono::nanoseconds monotonic_now();

// While it lives, SIGINT, SIGTERM and SIGUSR1 are noted and do not end the process: the first two
// say stop, the last that the time is up. One at a time.
class WorkerSignals {
 public:
  WorkerSignals();
  ~WorkerSignals();
  WorkerSignals(const WorkerSignals&) = delete;
  WorkerSignals& operator=(const WorkerSignals&) = delete;

  static Told told();
  static std::optional<int> signal();  // the first one noted
};

// Shorter when a signal comes.
void sleep_until_told(std::chrono::milliseconds length);

}  // namespace rematch
