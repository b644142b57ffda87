// A list of texts in a sentence, a table's cell or a line.
#pragma once

#include <string>
#include <string_view>

namespace rematch {

// The parts in order with `separator` between them: "mm, bmm". Of any range of strings.
template <class Parts>
std::string joined(const Parts& parts, std::string_view separator = ", ") {
  std::string text;
  std::string_view before;
  for (const std::string_view part : parts) {
    text.append(before).append(part);
    before = separator;
  }
  return text;
}

}  // namespace rematch
