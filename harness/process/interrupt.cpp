#include "harness/process/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <utility>

namespace rematch {
namespace {

volatile std::sig_atomic_t noted_signal = 0;
int num_guards = 0;

extern "C" void note_signal(int signal_number) {
  if (noted_signal == 0) noted_signal = signal_number;
}

}  // namespace

InterruptGuard::InterruptGuard(std::initializer_list<int> signals) : signals_(signals) {
  if (num_guards++ == 0) noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = &note_signal;
  sigemptyset(&action.sa_mask);
  for (const int number : signals_) sigaction(number, &action, &previous_.emplace_back());
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t index = 0; index < signals_.size(); ++index) {
    sigaction(signals_[index], &previous_[index], nullptr);
  }
  --num_guards;
}

std::optional<int> InterruptGuard::signal() {
  if (noted_signal == 0) return std::nullopt;
  return noted_signal;
}

namespace {

sigset_t interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void hold_interrupts() {
  const sigset_t signals = interrupts();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

std::optional<int> take_held_interrupt() {
  const sigset_t signals = interrupts();
  constexpr timespec kNoWait{};
  const int taken = sigtimedwait(&signals, nullptr, &kNoWait);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  return taken > 0 ? std::optional(taken) : std::nullopt;
}

namespace {

// Makes only system calls, because the signal may arrive in the middle of any function.
extern "C" void announce_and_exit(int signal_number) {
  constexpr char kMessage[] = "rematch: interrupted\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  _exit(128 + signal_number);
}

}  // namespace

void announce_interrupts() {
  struct sigaction action {};
  action.sa_handler = &announce_and_exit;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction inherited {};
    sigaction(number, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

Interrupted::Interrupted(int signal_number, std::string remains)
    : std::runtime_error("interrupted by signal " + std::to_string(signal_number)),
      signal(signal_number),
      what_remains(std::move(remains)) {}

}  // namespace rematch
