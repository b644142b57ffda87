#include "policies/base/text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace rematch {
namespace {

constexpr std::size_t kLongest = 120;  // maximum length of the escaped text in bytes
// Characters that separate words, names and arguments.
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

bool is_inside_character(char letter) {  // true for a continuation byte of UTF-8
  return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U;
}

bool is_separator(char letter) { return kSeparators.find(letter) != std::string_view::npos; }

// Returns about the first `end` bytes of `text`. Never cuts a UTF-8 character, and cuts a word only
// if the word is very long.
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

std::string filled_in(std::string_view text, std::string_view hole, std::string_view value) {
  std::string filled(text);
  for (std::size_t at = filled.find(hole); at != std::string::npos;
       at = filled.find(hole, at + value.size())) {
    filled.replace(at, hole.size(), value);
  }
  return filled;
}

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

namespace {

// A shorter prefix is too ambiguous: `n` does not suggest `none`.
constexpr std::size_t kShortestPrefix = 3;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_start(std::string_view text, std::string_view name) {
  const std::size_t shorter = std::min(text.size(), name.size());
  return shorter >= kShortestPrefix && text.substr(0, shorter) == name.substr(0, shorter);
}

}  // namespace

int edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<int> before_previous(width), previous(width), current(width);
  for (std::size_t column = 0; column < width; ++column) current[column] = static_cast<int>(column);
  for (std::size_t row = 1; row <= left.size(); ++row) {
    before_previous.swap(previous);
    previous.swap(current);
    current[0] = static_cast<int>(row);
    for (std::size_t column = 1; column < width; ++column) {
      const bool same = left[row - 1] == right[column - 1];
      current[column] = std::min(
          {previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (same ? 0 : 1)});
      if (row > 1 && column > 1 && left[row - 1] == right[column - 2] &&
          left[row - 2] == right[column - 1]) {
        current[column] = std::min(current[column], before_previous[column - 2] + 1);
      }
    }
  }
  return current.back();
}

bool are_different_words(std::string_view left, std::string_view right, std::size_t short_letters) {
  std::string one = lower_case(left);
  std::string other = lower_case(right);
  if (one.size() != other.size()) return false;
  const bool has_digit = one.find_first_of("0123456789") != std::string::npos;
  if (one.size() > short_letters && !has_digit) return false;
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  return one != other;
}

std::optional<std::string> nearest_name(std::string_view text,
                                        const std::vector<std::string_view>& known) {
  const std::string typed = lower_case(text);
  std::optional<std::string> nearest;
  int nearest_distance = 0;
  for (const std::string_view name : known) {
    const std::string candidate = lower_case(name);
    int distance = edit_distance(typed, candidate);
    if (are_different_words(typed, candidate)) continue;
    const int allowed = std::max(1, static_cast<int>(std::max(typed.size(), candidate.size())) / 3);
    // a prefix match counts only if no name is near by edit distance
    if (distance > allowed) {
      if (!is_start(typed, candidate)) continue;
      distance += allowed;
    }
    if (!nearest || distance < nearest_distance) {
      nearest = std::string(name);
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string_view>& known) {
  if (const auto nearest = nearest_name(text, known)) return "; did you mean '" + *nearest + "'?";
  std::string message;
  for (const std::string_view name : known) {
    message.append(message.empty() ? "; known: " : ", ").append(name);
  }
  return message;
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& known) {
  return did_you_mean(text, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace rematch
