// This process as a worker of a sweep: its identity and the signals that it receives. Also checks
// whether the processes of other workers are alive.
#pragma once

#include <chrono>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <string>

#include "harness/process/interrupt.h"
#include "harness/sweep/claims.h"
#include "harness/sweep/work_loop.h"

namespace rematch {

// Returns this process's identity. It includes the node's name and, under Slurm, the task of the
// job array.
ClaimHolder this_worker(const std::string& plan);

// Returns whether the holder's process is known to have ended. Only processes of this machine can
// be checked; returns false for any other process.
bool is_process_gone(const ClaimHolder& holder);

// The system's monotonic clock.
std::chrono::nanoseconds monotonic_now();

// The signals that a worker handles. SIGUSR1 means that the worker's time is up. The other signals
// tell the worker to stop.
inline constexpr std::initializer_list<int> kWorkerSignals = {SIGINT, SIGTERM, SIGUSR1};
StopRequest stop_request_by_signal();

// Sleeps for `length`. Returns early if a signal arrives.
void sleep_until_told(std::chrono::milliseconds length);

// Acquires the lock for measuring times on this machine's CPU, because two workers would disturb
// each other. The lock is released when the result is destroyed or the process ends. Null if
// another process holds the lock. The lock file is in this host's memory, so only processes of this
// host share the lock. Throws FileError.
std::shared_ptr<void> take_host_turn(const std::string& file = "/dev/shm/rematch.timing.lock");

}  // namespace rematch
