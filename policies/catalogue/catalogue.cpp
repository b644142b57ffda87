#include "policies/catalogue/catalogue.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/call.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/policy_json.h"

namespace rematch {
namespace {

std::vector<CatalogueEntry> of_system(std::vector<CatalogueEntry> entries) {
  for (CatalogueEntry& entry : entries) entry.is_of_system = true;
  return entries;
}

std::vector<CatalogueEntry> all_families() {
  std::vector<CatalogueEntry> all;
  append(all, layer_policies());
  append(all, save_list_policies());
  append(all, alternating_policies());
  append(all, region_policies());
  append(all, module_policies());
  append(all, of_system(maxtext_policies()));
  append(all, collective_policies());
  append(all, offloading_policies());
  append(all, of_system(remat_policies()));
  append(all, of_system(titan_region_policies()));
  return all;
}

// The user wrote the lists of a policy file, so each entry that matches nothing deserves a warning.
void expect_all(Policy& policy) {
  std::vector<Selector> own = policy.save;
  for (const StoreRule& rule : policy.moved_to.values) append(own, rule.results);
  append(own, policy.exclude);
  append(own, policy.recompute);
  append(own, policy.save_regions);
  append(own, policy.recompute_regions);
  if (policy.alternate) append(own, policy.alternate->exclude);
  for (const Selector& selector : own) policy.expectations.push_back({.ops = {selector}});
  for (const std::string& pattern : policy.regions.patterns) {
    policy.expectations.push_back({.scopes = {pattern}});
  }
}

std::string unknown(std::string_view text, std::string_view name) {
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : catalogue()) names.push_back(entry.name);
  // If no catalogue name is similar, the user may have misspelled the name of a system's mode.
  if (const auto spelling = nearest_spelling(text); spelling && !nearest_name(name, names)) {
    return "unknown policy " + in_quotes(text) + "; did you mean '" + *spelling + "'?";
  }
  const auto nearest = nearest_name(name, names);
  return "unknown policy " + in_quotes(name) +
         (nearest ? "; did you mean '" + *nearest + "'? See" : "; see") +
         " rematch list for policies and rematch list --systems for modes of other systems; a "
         "policy file ends in .json";
}

// Rejects a policy file that uses the name of a different catalogue policy. Reports and runs
// identify a policy by its name alone, so a name must not have two meanings.
std::variant<Policy, Rejected> policy_of_file(const std::string& path) {
  auto read = read_policy_file(path);
  auto* policy = std::get_if<Policy>(&read);
  if (policy == nullptr) return read;
  auto known = policy->name.ends_with(".json") ? Rejected() : parse_policy(policy->name);
  auto* namesake = std::get_if<Policy>(&known);
  if (namesake == nullptr) {
    expect_all(*policy);
    return read;
  }
  namesake->name = policy->name;  // keeps the file's spelling, which may not be canonical
  if (policy_to_json(*namesake) == policy_to_json(*policy)) return known;
  return Rejected{path + ": name: " + in_quotes(policy->name) +
                  " already names a different policy in `rematch list`; choose another name"};
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = all_families();
  return entries;
}

std::variant<Policy, Rejected> parse_policy(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return Rejected{"a policy name is empty; `rematch list` shows all policies"};
  if (text.ends_with(".json")) return policy_of_file(std::string(text));
  const std::optional<Call> call = parse_call(text);
  if (!call) {
    return Rejected{"policy " + in_quotes(text) +
                    " is not of the form name or name(arguments), for example nth_last(2)"};
  }
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == call->name) return make_policy(entry, call->arguments.value_or(""));
  }
  if (auto parsed = parse_system_spelling(text, *call)) return *std::move(parsed);
  return Rejected{unknown(text, call->name)};
}

namespace {

// Adds modes without an equivalent policy to `refused`. If `refused` is null, returns Rejected for
// such a mode instead.
std::variant<std::vector<Policy>, Rejected> parse_list(std::string_view text,
                                                       std::vector<RefusedPolicy>* refused) {
  const auto parts = split_at_commas(text);
  if (!parts) return Rejected{"the brackets of " + in_quotes(text) + " are unbalanced"};
  std::vector<Policy> policies;
  for (std::string_view part : *parts) {
    if (part.empty()) {
      return Rejected{"the list of policies " + in_quotes(text) +
                      " has an empty entry; write names with one comma between them"};
    }
    auto parsed = parse_policy(part);
    if (const auto* rejected = std::get_if<Rejected>(&parsed)) {
      if (refused == nullptr || !is_refused_mode(part)) return *rejected;
      refused->push_back({std::string(part), rejected->message});
      continue;
    }
    Policy& policy = std::get<Policy>(parsed);
    if (std::any_of(policies.begin(), policies.end(),
                    [&](const Policy& other) { return other.name == policy.name; })) {
      return Rejected{"policy " + policy.name + " is listed twice; list it once"};
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

}  // namespace

std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text) {
  return parse_list(text, nullptr);
}

std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text,
                                                           std::vector<RefusedPolicy>& refused) {
  return parse_list(text, &refused);
}

}  // namespace rematch
