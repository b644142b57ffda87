// The named policies: parsing a spelling such as `nth_last(2)` into a Policy, and the one list of
// all of them. Adding one: a function in its family's file, a line in catalogue.cpp, a test.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/policy.h"
#include "policies/plan/rejected.h"

namespace rematch {

struct CatalogueEntry {
  std::string_view name;         // "nth_last"
  std::string_view parameters;   // "(N)" or ""
  std::string_view description;  // one line
  std::string_view used_by;      // "torchtune selective, modalities selective_layer"
  std::string_view note = {};    // a rule of the source that can match nothing here; may be empty
};

const std::vector<CatalogueEntry>& catalogue();

// The note of a policy under this name, or under a system's spelling of it; empty: none.
std::string_view note_of(std::string_view policy);

// One policy: a catalogue name with arguments, `nth_last(2)`, or the path of a JSON policy file
// (ends in .json). Unknown names are rejected with the nearest known one.
std::variant<Policy, Rejected> parse_policy(std::string_view text);

// A comma-separated list; commas inside brackets do not split. Rejects duplicates and empties.
std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text);

}  // namespace rematch
