// Child processes with a time limit. Each measurement runs in its own process.
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

// A child process that the caller polls between other work.
class Child {
 public:
  // Starts `command` (argv; the first word is a path) in its own process group. The child's stdin
  // and stdout are /dev/null. `environment` lists variables to set, "NAME=value". Keeps the end of
  // the child's stderr. The child dies with this process, however this process ends. Throws
  // std::system_error if the child cannot be started.
  explicit Child(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment = {});
  // Like the constructor above, but appends the child's stderr to `error_file`. If `error_file` is
  // empty, the child writes to this process's stderr.
  Child(const std::vector<std::string>& command, const std::vector<std::string>& environment,
        const std::string& error_file);
  ~Child();  // kills the group of a child that has not ended
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal_number) const;  // sends the signal to the child's group
  // Sends SIGTERM, and SIGKILL if the child still runs after `grace`. Returns when the child has
  // ended.
  void stop(std::chrono::milliseconds grace);

  // Waits until the child writes to stderr, the child ends, a signal arrives or `longest` has
  // passed. Reads what the child wrote. Returns whether the child has ended.
  bool poll_once(std::chrono::milliseconds longest);
  bool has_ended() const { return ended_; }
  // A file descriptor that becomes readable when the child writes to stderr or ends. -1 after the
  // child's stderr was closed, or if stderr is not kept.
  int error_end() const { return error_end_; }

  // The three functions below may be called only after the child has ended.
  int status() const { return status_; }  // the status that wait() returned
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
  int code = 0;            // exit code, or the number of the signal that ended the child
  std::string error_tail;  // end of the child's stderr
  Bytes peak_resident;     // peak resident memory of the child, including its code and libraries
  // Set only if SIGKILL ended the child: see is_memory_short().
  bool memory_was_short = false;
  std::chrono::nanoseconds elapsed{};
};

// Runs a child to its end. Stops the child after `limit`, or if an InterruptGuard saw a signal.
// Throws std::system_error if the child cannot be started.
ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds limit);

// Fills `result`, except `elapsed`, from a child that has ended. The caller must set `result.end`
// before this call. `before` is the memory of the machine when the child began.
void take_end(const Child& child, const MachineMemory& before, ChildResult& result);

// Returns whether a child may have been killed because memory ran out. This is so if the system
// killed some process for lack of memory while the child ran, if the child held half of the memory,
// or if the total is unknown. Pure.
bool is_memory_short(const MachineMemory& before, const MachineMemory& after, Bytes peak_resident);

// The path of this program's own file, used to start the program again.
std::string own_executable();
// The hash of this program's own file. Equal hashes mean that two machines or processes run the
// same program.
std::string own_executable_sha256();

}  // namespace rematch
