#include "policies/catalogue/missing_modules.h"

#include <string_view>
#include <variant>
#include <vector>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/treat_ops.h"

namespace rematch {
namespace {

// A policy file may bear any name without being it.
bool is_what_its_name_says(const Policy& policy) {
  const auto parsed = parse_policy(policy.name);
  const auto* meant = std::get_if<Policy>(&parsed);
  return meant != nullptr && *meant == policy;
}

// As the catalogue spells the policy, whichever system's spelling was typed.
std::string catalogue_spelling(const Policy& policy) {
  const std::optional<Call> call = parse_call(policy.name);
  const SystemEntry* system = call ? find_system_entry(*call) : nullptr;
  return system == nullptr ? policy.name : stands_for(*system, *call);
}

std::vector<std::string> modules_named_by(const Policy& policy) {
  const std::string spelling = catalogue_spelling(policy);
  const std::optional<Call> call = parse_call(spelling);
  if (!call || call->name != "recompute_modules" || !is_what_its_name_says(policy)) return {};
  return parse_words(call->arguments.value_or("")).value_or(std::vector<std::string>{});
}

bool has_module(const Trace& trace, std::string_view module) {
  const auto parsed = parse_policy("recompute_modules([" + std::string(module) + "])");
  const Policy& alone = std::get<Policy>(parsed);
  const auto placed = place_regions(alone, trace);
  const auto* regions = std::get_if<std::vector<PlacedRegion>>(&placed);
  if (regions == nullptr) return false;
  std::vector<OpRange> ranges;
  for (const PlacedRegion& region : *regions) ranges.push_back(region.range);
  return !OpTreater(alone, trace).check_matches(ranges);
}

}  // namespace

std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace) {
  std::string missing;
  for (const std::string& module : modules_named_by(policy)) {
    if (!has_module(trace, module)) missing.append(missing.empty() ? "" : ", no ").append(module);
  }
  if (missing.empty()) return std::nullopt;
  std::string present;
  for (const std::string_view module : module_names()) {
    if (has_module(trace, module)) present.append(present.empty() ? "" : ", ").append(module);
  }
  return policy.name + ": " + trace.model + " has no " + missing +
         ", so nothing is recomputed for that; of the modules it has " +
         (present.empty() ? "none" : present);
}

}  // namespace rematch
