#include "policies/catalogue/call.h"

#include "policies/trace/split_at_commas.h"

namespace rematch {

std::optional<Call> parse_call(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    const bool plain = text.find_first_of(")[], \t") == std::string_view::npos;
    return plain ? std::optional(Call{text, std::nullopt}) : std::nullopt;
  }
  if (text.back() != ')') return std::nullopt;
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (!split_at_commas(inside)) return std::nullopt;
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
  const auto parts = split_at_commas(text);
  if (!parts) return std::nullopt;
  for (const std::string_view part : *parts) words.emplace_back(without_quotes(part));
  return words;
}

}  // namespace rematch
