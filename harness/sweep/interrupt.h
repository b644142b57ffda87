// SIGINT and SIGTERM as something to ask for, so that long work ends between two of its steps.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rematch {

// While it lives, these signals do not end the process but are noted; who works asks. One at a
// time.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static std::optional<int> signal();  // the first one noted

 private:
  std::vector<int> signals_;
};

// Ends what the user interrupted: carries the signal up to main, which says what remains of the
// work and exits with 128 + signal.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int signal_number, std::string remains = "nothing of it is kept");
  int signal;
  std::string what_remains;  // claims no more than is there
};

}  // namespace rematch
