#include "harness/sweep/interrupt.h"

#include <signal.h>

#include <csignal>
#include <utility>

namespace rematch {
namespace {

volatile std::sig_atomic_t noted_signal = 0;
struct sigaction previous_interrupt;
struct sigaction previous_terminate;

extern "C" void note_signal(int signal_number) {
  if (noted_signal == 0) noted_signal = signal_number;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  struct sigaction action {};
  action.sa_handler = &note_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

std::optional<int> InterruptGuard::signal() {
  if (noted_signal == 0) return std::nullopt;
  return noted_signal;
}

Interrupted::Interrupted(int signal_number, std::string remains)
    : std::runtime_error("interrupted by signal " + std::to_string(signal_number)),
      signal(signal_number),
      what_remains(std::move(remains)) {}

}  // namespace rematch
