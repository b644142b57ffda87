// Sets a flag when SIGINT or SIGTERM arrives. Long-running work polls the flag, so that it can stop
// at a safe point.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rematch {

// While this guard exists, the given signals set a flag instead of ending the process. Guards may
// nest. The constructor of the outermost guard clears the flag.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static std::optional<int> signal();  // the first signal that arrived

 private:
  std::vector<int> signals_;
  std::vector<struct sigaction> previous_;  // the action of each signal before this guard
};

// Blocks SIGINT and SIGTERM. Call this before execv() into a program that calls
// take_held_interrupt() in main(). A signal that arrives in the meantime then ends that program
// with a message.
void hold_interrupts();

// Unblocks SIGINT and SIGTERM. If one of them arrived while blocked, returns it instead of letting
// it end the process.
std::optional<int> take_held_interrupt();

// From this call on, SIGINT and SIGTERM print one line and end the process with 128 + signal,
// unless an InterruptGuard catches them. A signal that the parent process ignores stays ignored.
void announce_interrupts();

// Thrown by work that the user interrupted. main() prints `what_remains` and exits with 128 +
// signal.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int signal_number, std::string remains = "nothing is kept");
  int signal;
  std::string what_remains;  // tells the user which results are certainly kept
};

}  // namespace rematch
