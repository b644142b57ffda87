// An error between ranks: one line that names the rank.
#pragma once

#include <stdexcept>

namespace rematch {

struct RanksError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
