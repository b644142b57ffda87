// Lists as a user types them: `a, b(1,2), c([0,2])`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace rematch {

// Without blanks and line ends at either end.
std::string_view trimmed(std::string_view text);

// Trimmed parts between commas outside brackets; "" gives one empty part. nullopt: brackets do not
// pair.
std::optional<std::vector<std::string_view>> split_at_commas(std::string_view text);

}  // namespace rematch
