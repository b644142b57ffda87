// The form in which policies are typed, `name` or `name(arguments)`, and calling a factory with
// such arguments.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "policies/catalogue/catalogue.h"

namespace rematch {

struct Call {
  std::string_view name;
  std::optional<std::string_view> arguments;
};

// nullopt: the text does not have that form.
std::optional<Call> parse_call(std::string_view text);

// The entry's policy with these arguments. Rejected: they are not what its factory takes, or the
// factory rejects them.
std::variant<Policy, Rejected> make_policy(const CatalogueEntry& entry, std::string_view arguments);

}  // namespace rematch
