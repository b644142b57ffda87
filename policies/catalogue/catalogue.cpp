#include "policies/catalogue/catalogue.h"

#include "policies/catalogue/families.h"

namespace rematch {

const std::vector<PolicyFamilyEntry>& policy_entries() {
  static const std::vector<PolicyFamilyEntry> all = [] {
    std::vector<PolicyFamilyEntry> entries;
    for (const auto* family : {&whole_block_policies(), &layer_policies(), &save_list_policies(),
                               &alternating_policies(), &region_policies(), &split_policies(),
                               &module_policies(), &maxtext_policies()}) {
      entries.insert(entries.end(), family->begin(), family->end());
    }
    return entries;
  }();
  return all;
}

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = [] {
    std::vector<CatalogueEntry> listed;
    for (const PolicyFamilyEntry& known : policy_entries()) listed.push_back(known.entry);
    return listed;
  }();
  return entries;
}

}  // namespace rematch
