// The list of all named policies, and the parser of spellings such as `nth_last(2)`. To add a
// policy, add a test and an entry in its family's file in families/. catalogue.cpp lists the
// families.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/policy.h"

namespace rematch {

// Makes a policy from its arguments: none, a whole number from 1, layer indices in ascending order,
// or words. If the factory does not name the policy, its name becomes the call in canonical
// spelling.
using PolicyFactory =
    std::variant<Policy (*)(), Policy (*)(int n), Policy (*)(const std::vector<int>& layers),
                 std::variant<Policy, Rejected> (*)(const std::vector<std::string>& words)>;

struct CatalogueEntry {
  // `call` is the name with its parameters, "nth_last(N)". Square brackets around parameters mean a
  // required list; [] is the empty list.
  CatalogueEntry(std::string_view call, std::string_view sentence, PolicyFactory factory)
      : name(call.substr(0, call.find('('))),
        parameters(call.substr(name.size())),
        description(sentence),
        make(factory) {}

  std::string_view name;         // "nth_last"
  std::string_view parameters;   // "(N)" for a policy with a number; "" for a policy without
                                 // parameters
  std::string_view description;  // one-line description
  PolicyFactory make;
  // true: a mode of another training system, so its regions are recomputed as a whole
  bool is_of_system = false;
};

// Returns all entries in display order.
const std::vector<CatalogueEntry>& catalogue();

// The names of the two extreme policies.
inline constexpr std::string_view kNonePolicy = "none";
inline constexpr std::string_view kFullPolicy = "full";
Policy none_policy();  // no checkpointing: keeps everything that backward needs
Policy full_policy();  // recomputes every block

// Parses one policy: a catalogue name with arguments such as `nth_last(2)`, a system's spelling
// (systems.h), or the path of a policy file, which ends in .json. For an unknown name, suggests the
// nearest known name.
std::variant<Policy, Rejected> parse_policy(std::string_view text);

// A policy that the user requested but that cannot be applied to the model.
struct RefusedPolicy {
  std::string name;
  std::string reason;
};

// Parses a comma-separated list. Commas inside brackets do not split. Rejects duplicates and empty
// entries.
std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text);

// Like the function above, but accepts modes of other systems that have no equivalent policy, and
// returns these modes in `refused`.
std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text,
                                                           std::vector<RefusedPolicy>& refused);

}  // namespace rematch
