// Child processes with a time limit: the unit of measurement is the process. Knows nothing of what
// the child does.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine_memory.h"
#include "policies/base/bytes.h"

namespace rematch {

// One child process, looked after between other work.
class Child {
 public:
  // Starts `command` (argv; the first is a path) in its own process group, stdin and stdout closed.
  // `environment`: variables to set, "NAME=value". The end of its stderr is kept. The child dies
  // with this process, however that ends. Throws std::system_error if it cannot be started.
  explicit Child(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment = {});
  // The same with its stderr behind what is in `error_file`; empty: this process' own stderr.
  Child(const std::vector<std::string>& command, const std::vector<std::string>& environment,
        const std::string& error_file);
  ~Child();  // kills the group of one that has not ended
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal_number) const;  // to its group
  // SIGTERM, and SIGKILL after `grace` if that does not help; returns when it is gone.
  void stop(std::chrono::milliseconds grace);

  // Reads its stderr, or waits for its end or a signal, for at most so long; then: has it ended?
  bool poll_once(std::chrono::milliseconds longest);
  bool has_ended() const { return ended_; }
  // Becomes readable when it writes to stderr or ends; -1 once its stderr is closed, or not kept.
  int error_end() const { return error_end_; }

  // Once it has ended.
  int status() const { return status_; }  // of wait()
  Bytes peak_resident() const { return Bytes{std::int64_t{usage_.ru_maxrss} * 1024}; }
  const std::string& error_tail() const { return tail_; }

 private:
  void start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             int error_file);
  bool read_some();

  int error_end_ = -1;
  pid_t pid_ = -1;
  int pid_file_ = -1;
  bool ended_ = false;
  int status_ = 0;
  rusage usage_{};
  std::string tail_;
};

enum class ChildEnd : std::uint8_t { kExited, kSignalled, kTimedOut, kInterrupted };

struct ChildResult {
  ChildEnd end = ChildEnd::kExited;
  int code = 0;                   // exit code, or the signal that ended it
  std::string error_tail;         // the end of what it wrote to stderr
  Bytes peak_resident;            // of the whole process
  bool memory_was_short = false;  // of one that SIGKILL ended: see is_memory_short()
  std::chrono::nanoseconds elapsed{};
};

// Runs a Child to its end. After `limit` it is stopped; the same when an InterruptGuard saw a
// signal. Throws std::system_error if it cannot be started.
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
