// A number in a reason: four digits, however small it is.
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
