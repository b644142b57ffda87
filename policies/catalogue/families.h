// The catalogue's entries by family, and what parsing needs to know of them. Inside this folder
// only: others see catalogue.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/catalogue/catalogue.h"

namespace rematch {

enum class PolicyArguments : std::uint8_t {
  kNoArguments,
  kCount,  // one whole number from 1
  kList,   // layer indices, maybe none: [0,2]
};

struct PolicyFamilyEntry {
  CatalogueEntry entry;
  PolicyArguments arguments = PolicyArguments::kNoArguments;
  // kCount: one number. The name is filled in by who calls.
  Policy (*make)(const std::vector<int>& arguments) = nullptr;
};

// The one list: every family's, in the order that people see.
const std::vector<PolicyFamilyEntry>& policy_entries();

const std::vector<PolicyFamilyEntry>& whole_block_policies();
const std::vector<PolicyFamilyEntry>& layer_policies();
const std::vector<PolicyFamilyEntry>& save_list_policies();
const std::vector<PolicyFamilyEntry>& region_policies();

}  // namespace rematch
