// Parses policies as users type them, `name` or `name(arguments)`, and calls a factory with the
// arguments.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"

namespace rematch {

struct Call {
  std::string_view name;
  std::optional<std::string_view> arguments;
};

// Returns nullopt if the text is neither `name` nor `name(arguments)`.
std::optional<Call> parse_call(std::string_view text);

// Makes the entry's policy with these arguments. Returns Rejected if the factory takes other
// arguments, or if the factory rejects their values.
std::variant<Policy, Rejected> make_policy(const CatalogueEntry& entry, std::string_view arguments);

}  // namespace rematch
