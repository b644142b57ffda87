// The catalogue's entries by family, and what parsing needs to know of them. Inside this folder
// only: others see catalogue.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/catalogue/catalogue.h"

namespace rematch {

enum class PolicyArguments : std::uint8_t {
  kNoArguments,
  kCount,  // one whole number from 1
  kList,   // layer indices, maybe none: [0,2]
  kText,   // the family's own: read by make_from_text
};

struct PolicyFamilyEntry {
  CatalogueEntry entry;
  PolicyArguments arguments = PolicyArguments::kNoArguments;
  // kCount: one number. The name is filled in by who calls.
  Policy (*make)(const std::vector<int>& arguments) = nullptr;
  // kText: what stands between the brackets; fills in the name as well.
  std::variant<Policy, Rejected> (*make_from_text)(std::string_view arguments) = nullptr;
  std::string_view example = {};  // kText: the arguments of a call that parses
};

// The one list: every family's, in the order that people see.
const std::vector<PolicyFamilyEntry>& policy_entries();

// Is it the very policy that its name spells. A policy file has a name that spells none, or is it.
bool is_what_its_name_says(const Policy& policy);

// What recompute_modules may name.
std::vector<std::string_view> module_names();

const std::vector<PolicyFamilyEntry>& whole_block_policies();
const std::vector<PolicyFamilyEntry>& layer_policies();
const std::vector<PolicyFamilyEntry>& save_list_policies();
const std::vector<PolicyFamilyEntry>& region_policies();
const std::vector<PolicyFamilyEntry>& alternating_policies();
const std::vector<PolicyFamilyEntry>& split_policies();
const std::vector<PolicyFamilyEntry>& module_policies();
const std::vector<PolicyFamilyEntry>& maxtext_policies();

}  // namespace rematch
