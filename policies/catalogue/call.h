// How a policy is typed: `name` or `name(arguments)`, commas inside brackets do not split. Inside
// this folder only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

struct Call {
  std::string_view name;
  std::optional<std::string_view> arguments;
};

// nullopt: not of that form.
std::optional<Call> parse_call(std::string_view text);

// "[a, b]", "a, b" or "['a', \"b\"]" as {"a", "b"}; "" and "[]" as {}. nullopt: brackets do not
// pair.
std::optional<std::vector<std::string>> parse_words(std::string_view text);

}  // namespace rematch
