#include "policies/catalogue/call.h"

#include <algorithm>
#include <vector>

#include "policies/base/text.h"

namespace rematch {
namespace {

// maximum value of N and of layer indices; no model has nearly as many layers
constexpr int kMaxArgument = 1'000'000;

std::string_view without_quotes(std::string_view word) {
  const bool quoted = word.size() >= 2 && word.front() == word.back() &&
                      (word.front() == '"' || word.front() == '\'');
  return quoted ? trimmed(word.substr(1, word.size() - 2)) : word;
}

// Parses a list as written in TOML and on command lines: "[a, b]", "a, b" and "['a', \"b\"]" give
// {"a", "b"}; "" and "[]" give {}. Commas inside brackets do not split. Returns nullopt if brackets
// are unbalanced.
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

// Converts the arguments to the types that an entry's factory takes, and calls the factory.
class Caller {
 public:
  Caller(const CatalogueEntry& entry, std::string_view arguments)
      : entry_(entry), name_(entry.name), arguments_(arguments) {}

  std::variant<Policy, Rejected> make() const {
    return std::visit([this](const auto& factory) { return call(factory); }, entry_.make);
  }

 private:
  using Made = std::variant<Policy, Rejected>;
  using Words = std::vector<std::string>;

  Made call(Policy (*factory)()) const {
    if (arguments_.empty()) return named(factory(), "");
    return Rejected{in_quotes(name_) + " takes no arguments, but got (" + std::string(arguments_) +
                    ")"};
  }

  Made call(Policy (*factory)(int)) const {
    const std::string form = name_ + "(N), for example " + name_ + "(2)";
    if (arguments_.empty()) return Rejected{in_quotes(name_) + " needs N: write " + form};
    const auto parts = *split_at_commas(arguments_);
    if (parts.size() > 1) {
      return Rejected{in_quotes(name_) + " takes one argument, but got " +
                      std::to_string(parts.size()) + ": write " + form};
    }
    const auto n = read_number(parts[0], 1, "N of " + name_ + "(N)");
    if (const auto* rejected = std::get_if<Rejected>(&n)) return *rejected;
    return named(factory(std::get<int>(n)), list({std::to_string(std::get<int>(n))}));
  }

  Made call(Policy (*factory)(const std::vector<int>&)) const {
    const auto given = words();
    if (const auto* rejected = std::get_if<Rejected>(&given)) return *rejected;
    std::vector<int> layers;
    for (const std::string& word : std::get<Words>(given)) {
      const auto layer = read_number(word, 0, "a layer index of " + name_);
      if (const auto* rejected = std::get_if<Rejected>(&layer)) return *rejected;
      if (std::find(layers.begin(), layers.end(), std::get<int>(layer)) != layers.end()) {
        return Rejected{name_ + " names layer " + word + " twice; name it once"};
      }
      layers.push_back(std::get<int>(layer));
    }
    std::sort(layers.begin(), layers.end());
    Words sorted;
    for (const int layer : layers) sorted.push_back(std::to_string(layer));
    return named(factory(layers), list(sorted));
  }

  Made call(std::variant<Policy, Rejected> (*factory)(const std::vector<std::string>&)) const {
    const auto given = words();
    if (const auto* rejected = std::get_if<Rejected>(&given)) return *rejected;
    auto made = factory(std::get<Words>(given));
    if (const auto* rejected = std::get_if<Rejected>(&made)) return *rejected;
    return named(std::get<Policy>(std::move(made)), list(std::get<Words>(given)));
  }

  bool is_bracketed() const { return entry_.parameters.starts_with("(["); }

  std::variant<Words, Rejected> words() const {
    if (arguments_.empty() && is_bracketed()) {
      return Rejected{in_quotes(name_) + " needs a list: write " + name_ +
                      std::string(entry_.parameters) + "; [] is an empty list"};
    }
    auto words = parse_words(arguments_);
    if (!words) return Rejected{"the brackets of " + in_quotes(arguments_) + " are unbalanced"};
    return *std::move(words);
  }

  std::string list(const Words& words) const {
    std::string text = is_bracketed() ? "([" : "(";
    return text.append(joined(words, ",")).append(is_bracketed() ? "])" : ")");
  }

  Policy named(Policy policy, const std::string& arguments) const {
    if (policy.name.empty()) policy.name = name_ + arguments;
    return policy;
  }

  static std::variant<int, Rejected> read_number(std::string_view text, int least,
                                                 const std::string& what) {
    const auto number = parse_number<int>(text);
    if (number && *number >= least && *number <= kMaxArgument) return *number;
    return Rejected{what + " must be a whole number from " + std::to_string(least) + " to " +
                    std::to_string(kMaxArgument) + ", not " + in_quotes(text)};
  }

  const CatalogueEntry& entry_;
  std::string name_;
  std::string_view arguments_;
};

}  // namespace

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

std::variant<Policy, Rejected> make_policy(const CatalogueEntry& entry,
                                           std::string_view arguments) {
  return Caller(entry, arguments).make();
}

}  // namespace rematch
