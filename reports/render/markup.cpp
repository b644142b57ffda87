#include "reports/render/markup.h"

#include "reports/render/text_width.h"

namespace rematch {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Of the character itself; empty: it may stand as it is.
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
      return "\n";
    default:
      return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? kReplacement : "";
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view special = length == 1 ? escaped(text[at]) : "";
    if (length == 0) {
      safe += kReplacement;
    } else if (!special.empty()) {
      safe += special;
    } else {
      safe += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return safe;
}

}  // namespace rematch
