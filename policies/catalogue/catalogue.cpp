#include "policies/catalogue/catalogue.h"

#include <optional>
#include <string>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/catalogue/systems.h"

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

std::string_view note_of(std::string_view policy) {
  const std::string spelling = catalogue_spelling(policy);
  const std::optional<Call> call = parse_call(spelling);
  if (!call) return {};
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == call->name) return entry.note;
  }
  return {};
}

}  // namespace rematch
