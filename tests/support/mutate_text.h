// Damages text and JSON as a faulty disk, an editor, a merge or an attacker might.
#pragma once

#include <cstdint>
#include <string>

#include "policies/base/json_fwd.h"

namespace rematch::testing {

// Applies one to four random changes. A change flips, removes, doubles or moves bytes, cuts off the
// end, or inserts tokens that parsers often mishandle. The same seed gives the same changes.
std::string mutate_text(const std::string& text, std::uint32_t seed);

// Returns valid JSON with one to three random changes. A change replaces a value by another type or
// an extreme number, removes a value, or duplicates or swaps members and elements.
Json mutate_json(const Json& json, std::uint32_t seed);

}  // namespace rematch::testing
