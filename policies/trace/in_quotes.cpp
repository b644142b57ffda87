#include "policies/trace/in_quotes.h"

#include <array>
#include <cstdio>

namespace rematch {
namespace {

constexpr std::size_t kLongest = 120;

void append_escaped(std::string& result, char letter) {
  const auto code = static_cast<unsigned char>(letter);
  if (letter == '\n') {
    result += "\\n";
  } else if (letter == '\t') {
    result += "\\t";
  } else if (code < 0x20 || code == 0x7f) {
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "\\x%02x", code);
    result += escape.data();
  } else {
    result += letter;
  }
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result(1, '\'');
  for (const char letter : text.substr(0, kLongest)) append_escaped(result, letter);
  if (text.size() > kLongest) result += "...";
  result += '\'';
  return result;
}

}  // namespace rematch
