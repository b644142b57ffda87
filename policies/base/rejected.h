// The error for invalid user input.
#pragma once

#include <string>

namespace rematch {

// Invalid input is expected, so this error is returned as a value and never thrown. `message` is
// one line that names the value, the allowed range and the remedy.
struct Rejected {
  std::string message;
};

}  // namespace rematch
