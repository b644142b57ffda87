// The error for invalid user input.
#pragma once

#include <string>

namespace rematch {

// An error for invalid input, which is expected. It is therefore returned as a value and never
// thrown. `message` is one line that names the value, the allowed range and the remedy.
struct Rejected {
  std::string message;
};

}  // namespace rematch
