// Child processes with a time limit: the unit of measurement is the process. Knows nothing of what
// the child does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "harness/sweep/interrupt.h"
#include "policies/trace/bytes.h"

namespace rematch {

enum class ChildEnd : std::uint8_t { kExited, kSignalled, kTimedOut, kInterrupted };

struct ChildResult {
  ChildEnd end = ChildEnd::kExited;
  int code = 0;                   // exit code, or the signal that ended it
  std::string error_tail;         // the end of what it wrote to stderr
  Bytes peak_resident;            // of the whole process
  bool memory_was_short = false;  // of one that SIGKILL ended: see is_memory_short()
  std::chrono::nanoseconds elapsed{};
};

// Runs `command` (argv; the first is a path) in its own process group, stdin and stdout closed.
// After `limit` the group gets SIGTERM, and SIGKILL if that does not help; the same when an
// InterruptGuard saw a signal. The child dies with this process, however that ends.
// Throws std::system_error if it cannot be started.
ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit);

// May a child have been killed for want of memory: the system killed some process for that while
// the child ran, or the child held half of what there is, or nothing is known. If not, whoever
// killed it had another reason. Pure.
bool is_memory_short(const MachineMemory& before, const MachineMemory& after, Bytes peak_resident);

// This program's own file, to start again.
std::string own_executable();

}  // namespace rematch
