// One child process, looked after between other work. Knows nothing of what the child does, and of
// its stderr keeps the end.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "policies/base/bytes.h"

namespace rematch {

class Child {
 public:
  // Starts `command` (argv; the first is a path) in its own process group, stdin and stdout closed.
  // `environment`: variables to set, "NAME=value". The child dies with this process, however that
  // ends. Throws std::system_error if it cannot be started.
  explicit Child(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment = {});
  ~Child();  // kills the group of one that has not ended
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal_number) const;  // to its group

  // Reads its stderr, for at most so long; then: has it ended?
  bool poll_once(std::chrono::milliseconds longest);
  bool has_ended() const { return ended_; }
  // Becomes readable when it writes to stderr or ends; -1 once its stderr is closed.
  int error_end() const { return error_end_; }

  // Once it has ended.
  int status() const { return status_; }  // of wait()
  Bytes peak_resident() const { return Bytes{std::int64_t{usage_.ru_maxrss} * 1024}; }
  const std::string& error_tail() const { return tail_; }

 private:
  bool read_some();

  int error_end_ = -1;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  rusage usage_{};
  std::string tail_;
};

}  // namespace rematch
