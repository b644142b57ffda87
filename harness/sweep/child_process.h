// A child process that ends with this one, however this one ends, and writes its messages into a
// file. Does not wait: its owner looks after it between beats.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace rematch {

class ChildProcess {
 public:
  // `command[0]` is the program's path. stdout goes nowhere, stderr behind what is in `error_file`.
  // `environment`: variables to set, "NAME=value". Throws std::system_error.
  ChildProcess(const std::vector<std::string>& command, const std::string& error_file,
               const std::vector<std::string>& environment = {});
  ~ChildProcess();  // kills what is still there
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Has it ended? Waits for that, a signal or so long.
  bool wait_for(std::chrono::milliseconds longest);
  void send(int signal_number) const;
  // SIGTERM, and SIGKILL if that does not help soon.
  void stop();
  // The status of wait(), once the child has ended.
  int status() const { return status_; }

 private:
  pid_t pid_ = -1;
  int pid_file_ = -1;
  bool has_ended_ = false;
  int status_ = 0;
};

// Who of the workers on one machine measures times on its CPU: one at a time, since two would
// disturb each other.

// Held until it is dropped or its process ends, however that ends. Null: another process has it.
// The file lies in the memory of this host, so the lock is nobody else's. Throws FileError.
std::shared_ptr<void> take_host_turn(const std::string& file = "/dev/shm/rematch.timing.lock");

}  // namespace rematch
