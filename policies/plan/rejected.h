// An input that cannot be used, as a value.
#pragma once

#include <string>

namespace rematch {

// Expected of a user's input, so returned and never thrown; `message` is one line that names the
// value, the allowed range and what to do.
struct Rejected {
  std::string message;
};

}  // namespace rematch
