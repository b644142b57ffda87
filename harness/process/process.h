// Child processes with a time limit: the unit of measurement is the process. Knows nothing of what
// the child does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "policies/base/bytes.h"

namespace rematch {

class Child;

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

// Takes what a child that has ended left; `before`: the memory of the machine when it began. Reads
// `end` of `result`, which whoever ended the child has set, and leaves `elapsed` alone.
void take_end(const Child& child, const MachineMemory& before, ChildResult& result);

// May a child have been killed for want of memory: the system killed some process for that while
// the child ran, or the child held half of what there is, or nothing is known. If not, whoever
// killed it had another reason. Pure.
bool is_memory_short(const MachineMemory& before, const MachineMemory& after, Bytes peak_resident);

// This program's own file, to start again.
std::string own_executable();
// Hash of that file: where two machines or processes have the same, they run the same program.
std::string own_executable_sha256();

}  // namespace rematch
