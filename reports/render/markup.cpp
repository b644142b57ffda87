#include "reports/render/markup.h"

namespace rematch {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns the escape of a character; empty if the character needs no escape.
std::string_view escaped(char letter) {
  switch (letter) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\n':
      return "";
    default:
      return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? kReplacement : "";
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view special = length == 0   ? kReplacement
                                     : length == 1 ? escaped(text[0])
                                                   : "";
    safe += special.empty() ? text.substr(0, length) : special;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return safe;
}

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 || first >= 0xf5 ? 0
                             : first >= 0xf0               ? 4
                             : first >= 0xe0               ? 3
                                                           : 2;
  if (length > text.size()) return 0;
  for (std::size_t index = 1; index < length; ++index) {
    if ((static_cast<unsigned char>(text[index]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace rematch
