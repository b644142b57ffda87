#include "policies/catalogue/call.h"

namespace rematch {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::vector<std::string_view>> split_arguments(std::string_view text) {
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

std::optional<Call> parse_call(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    const bool plain = text.find_first_of(")[], \t") == std::string_view::npos;
    return plain ? std::optional(Call{text, std::nullopt}) : std::nullopt;
  }
  if (text.back() != ')') return std::nullopt;
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (!split_arguments(inside)) return std::nullopt;
  return Call{trimmed(text.substr(0, open)), trimmed(inside)};
}

// As a list is written in TOML or on a command line: ["moe.router.gate"].
static std::string_view without_quotes(std::string_view word) {
  const bool quoted = word.size() >= 2 && word.front() == word.back() &&
                      (word.front() == '"' || word.front() == '\'');
  return quoted ? trimmed(word.substr(1, word.size() - 2)) : word;
}

std::optional<std::vector<std::string>> parse_words(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = trimmed(text.substr(1, text.size() - 2));
  }
  std::vector<std::string> words;
  if (text.empty()) return words;
  const auto parts = split_arguments(text);
  if (!parts) return std::nullopt;
  for (const std::string_view part : *parts) words.emplace_back(without_quotes(part));
  return words;
}

}  // namespace rematch
