// This process as a worker of a sweep: how others know it, what it knows of them, and what it is
// told by signals.
#pragma once

#include <chrono>
#include <string>

#include "harness/sweep/claims.h"
#include "harness/sweep/interrupt.h"
#include "harness/sweep/work_loop.h"

namespace rematch {

// With the node's name and the task's from Slurm where it runs under it.
ClaimHolder this_worker(const std::string& plan);

// Did this process run on this very machine, and is it no more? False where it cannot be known.
bool is_process_gone(const ClaimHolder& holder);

// The system's monotonic clock.
std::chrono::nanoseconds monotonic_now();

// SIGUSR1 is noted as well: it says that the time is up, the others say stop.
class WorkerSignals : public InterruptGuard {
 public:
  WorkerSignals();

  static Told told();
};

// Shorter when a signal comes.
void sleep_until_told(std::chrono::milliseconds length);

}  // namespace rematch
