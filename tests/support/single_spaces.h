// Replaces runs of spaces by one space, so that a test can name a row of a table.
#pragma once

#include <string>

namespace rematch::testing {

inline std::string with_single_spaces(const std::string& text) {
  std::string single;
  for (const char letter : text) {
    if (letter != ' ' || !single.ends_with(' ')) single += letter;
  }
  return single;
}

}  // namespace rematch::testing
