#include "policies/base/split_at_commas.h"

#include <string>

namespace rematch {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::vector<std::string_view>> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  std::string open;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') open += c == '(' ? ')' : ']';
    if (c == ')' || c == ']') {
      if (open.empty() || open.back() != c) return std::nullopt;
      open.pop_back();
    }
    if (c == ',' && open.empty()) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (!open.empty()) return std::nullopt;
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

}  // namespace rematch
