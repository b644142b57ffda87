// Lets a host language, such as Python, throw its own errors in place of the engine's errors. The
// engine throws inside ops and saved-tensor hooks, whose callers know only std::exception. A host
// language with its own error classes registers a function that throws them.
#pragma once

#include <cstdint>

#include "harness/engine/recording.h"

namespace rematch {

enum class ErrorKind : std::uint8_t { kRefused, kStreamMismatch };

// Throws the host's error. If the function returns, the engine throws its own error. May be called
// on any thread, with or without the host's locks.
using HostThrow = void (*)(ErrorKind kind, const char* message);

// Sets the function that throws the host's errors. Null restores the engine's own errors. Call this
// before the first Recording.
void set_host_throw(HostThrow host_throw);

// Throws the host's error, if a function is set; otherwise returns.
void throw_for_host(ErrorKind kind, const char* message);

// Runs `call`. If it throws one of the engine's errors, throws the host's error instead.
template <class Call>
auto with_host_errors(const Call& call) {
  try {
    return call();
  } catch (const Refused& error) {
    throw_for_host(ErrorKind::kRefused, error.what());
    throw;
  } catch (const StreamMismatch& error) {
    throw_for_host(ErrorKind::kStreamMismatch, error.what());
    throw;
  }
}

}  // namespace rematch
