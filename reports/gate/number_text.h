// A number in a reason: short, and never rounded to what it is not.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace rematch {

inline std::string number_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

}  // namespace rematch
