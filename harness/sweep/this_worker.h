// This process as a worker of a sweep: how others know it, what it knows of them, and what it is
// told by signals.
#pragma once

#include <chrono>
#include <csignal>
#include <initializer_list>
#include <memory>
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

// The signals to be noted while it works: SIGUSR1 says that the time is up, the others say stop.
inline constexpr std::initializer_list<int> kWorkerSignals = {SIGINT, SIGTERM, SIGUSR1};
Told told_by_signal();

// Shorter when a signal comes.
void sleep_until_told(std::chrono::milliseconds length);

// The right to measure times on this machine's CPU: two workers would disturb each other. Held
// until it is dropped or its process ends, however that ends. Null: another process has it. The
// file lies in the memory of this host, so the lock is nobody else's. Throws FileError.
std::shared_ptr<void> take_host_turn(const std::string& file = "/dev/shm/rematch.timing.lock");

}  // namespace rematch
