#include "policies/base/in_quotes.h"

#include <array>
#include <cstdio>

namespace rematch {
namespace {

constexpr std::size_t kLongest = 120;  // as it is shown
// Between words, names and arguments.
constexpr std::string_view kSeparators = " ,;/|+=()[]{}";

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

bool is_inside_character(char letter) {  // of UTF-8: no first byte
  return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U;
}

bool is_separator(char letter) { return kSeparators.find(letter) != std::string_view::npos; }

// `text` up to `end`, without a part of a character, and of a word unless the word is very long.
std::string_view head(std::string_view text, std::size_t end) {
  while (end > 0 && is_inside_character(text[end])) --end;
  if (is_separator(text[end])) return text.substr(0, text[end] == ' ' ? end + 1 : end);
  const std::size_t last = text.substr(0, end).find_last_of(kSeparators);
  if (last != std::string_view::npos && last >= end - end / 3) end = last + 1;
  return text.substr(0, end);
}

std::string_view tail(std::string_view text, std::size_t start) {
  while (start < text.size() && is_inside_character(text[start])) ++start;
  const std::size_t next =
      is_separator(text[start - 1]) ? start - 1 : text.find_first_of(kSeparators, start);
  const std::size_t rest = text.size() - start;
  if (next != std::string_view::npos && next <= start + rest / 3) start = next;
  return text.substr(start);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result(1, '\'');
  for (const char letter : text) {
    if (result.size() > kLongest && !is_inside_character(letter)) {
      const std::size_t last = result.find_last_of(kSeparators);
      const bool ends_word =
          is_separator(letter) || last == std::string::npos || last < kLongest * 2 / 3;
      if (!ends_word) result.resize(last + 1);
      result += letter == ' ' ? " ..." : "...";
      break;
    }
    append_escaped(result, letter);
  }
  result += '\'';
  return result;
}

std::string on_one_line(std::string_view text, std::size_t longest) {
  std::string result;
  const auto append = [&result](std::string_view part) {
    for (const char letter : part) append_escaped(result, letter);
  };
  if (text.size() <= longest) {
    append(text);
    return result;
  }
  const std::size_t half = longest / 2;
  append(head(text, longest - half));
  result += "...";
  append(tail(text, text.size() - half));
  return result;
}

}  // namespace rematch
