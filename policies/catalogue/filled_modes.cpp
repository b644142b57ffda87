// Replaces the placeholders in the modes of training systems by the values that a model allows.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/systems.h"

namespace rematch {
namespace {

using Values = std::map<std::string, std::string>;  // values, keyed by placeholder: {"N", "2"}

// A list may contain any subset of the names, so n names give 2^n lists. With more names than this,
// trying all lists would take seconds for each system.
constexpr std::size_t kMaxNames = 9;

int most_layers(const Trace& trace) {
  std::map<std::string, int> layers;
  int most = 0;
  for (const TracedBlock& block : trace.blocks) most = std::max(most, ++layers[block.list]);
  return most;
}

// Returns the items of "[a,b]" or "a,b".
std::vector<std::string> items_of(std::string_view list) {
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  std::vector<std::string> items;
  const auto parts = split_at_commas(list);
  if (!parts) return items;
  for (const std::string_view part : *parts) items.emplace_back(trimmed(part));
  return items;
}

std::string spelling_of(std::string_view pattern, const Values& values) {
  const std::size_t arguments = pattern.find('(');
  std::string text(pattern);
  if (arguments == std::string_view::npos) return text;
  for (const auto& [letter, value] : values) {
    // A placeholder is a whole argument, or the part of an argument after "=".
    for (const std::string& before : {std::string("="), std::string("(")}) {
      for (const char after : {',', ')'}) {
        const std::string hole = before + letter + after;
        const std::size_t at = text.find(hole, arguments);
        if (at != std::string::npos) text.replace(at, hole.size(), before + value + after);
      }
    }
  }
  return text;
}

// Returns the names of the scopes directly below the blocks: {"attention", "ffn", ...}.
std::vector<std::string_view> parts_of_blocks(const Trace& trace) {
  std::vector<std::string_view> names;
  for (const TracedBlock& block : trace.blocks) {
    const std::size_t start = trace.scopes[block.scope].path.size() + 1;
    for (const TracedScope& scope : trace.scopes) {
      if (scope.parent != block.scope) continue;
      const std::string_view name = std::string_view(scope.path).substr(start);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// Returns the names that a list argument of the policy may contain.
std::vector<std::string_view> names_that_policy_takes(std::string_view policy, const Trace& trace) {
  const std::string_view name = policy.substr(0, policy.find('('));
  if (name == "remat") return parts_of_blocks(trace);
  if (name == "recompute_modules") return recomputable_modules();
  if (name == "offload_modules") return offloadable_modules();
  if (name == "sac_modalities") return modalities_keys();
  return name == "remat_titan" ? titan_region_names() : std::vector<std::string_view>{};
}

// Returns all lists of names that apply to this model: "[a]", "[b]", "[a,b]". If there are too many
// names, returns only the lists of a single name and the list of all names.
std::vector<std::string> lists_of(std::string_view policy, const Trace& trace,
                                  const Resolver& resolver) {
  std::vector<std::string> names;
  for (const std::string_view name : names_that_policy_takes(policy, trace)) {
    const std::string alone = filled_in(policy, "{}", "[" + std::string(name) + "]");
    if (plan_if_possible(alone, resolver)) names.emplace_back(name);
  }
  std::vector<std::string> lists;
  const bool is_few = names.size() <= kMaxNames;
  if (!is_few) {
    for (const std::string& name : names) lists.push_back("[" + name + "]");
    lists.push_back("[" + joined(names, ",") + "]");
    return lists;
  }
  for (std::size_t chosen = 1; chosen < std::size_t{1} << names.size(); ++chosen) {
    std::vector<std::string> some;
    for (std::size_t name = 0; name < names.size(); ++name) {
      if ((chosen >> name & 1) != 0) some.push_back(names[name]);
    }
    lists.push_back("[" + joined(some, ",") + "]");
  }
  return lists;
}

// Returns the sets of values that can replace an entry's placeholders. An entry without
// placeholders has a single, empty set.
std::vector<Values> values_of(const SystemEntry& entry, const Trace& trace,
                              const Resolver& resolver) {
  const std::size_t hole = entry.stands_for.find('{');
  if (hole == std::string_view::npos) return {Values()};
  const std::string letter(1, entry.stands_for[hole + 1]);
  std::vector<Values> all;
  if (letter == "N") {
    for (int number = 1; number <= most_layers(trace); ++number) {
      all.push_back({{letter, std::to_string(number)}});
    }
    return all;
  }
  // Skips an entry with two lists, because another entry of the system gives the same policy with
  // one list.
  if (entry.stands_for.find('{', hole + 1) != std::string_view::npos) return {};
  const std::string policy = filled_in(entry.stands_for, "{" + letter + "}", "{}");
  for (const std::string& list : lists_of(policy, trace, resolver)) all.push_back({{letter, list}});
  return all;
}

}  // namespace

std::string filled_configuration(std::string_view pattern, const Values& values) {
  std::string text(pattern);
  for (const auto& [letter, value] : values) {
    text = filled_in(text, "{" + letter + "}", value);
    const std::string start = "{" + letter + ";";
    for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start)) {
      const std::size_t end = text.find('}', at);
      const std::string separator = text.substr(at + start.size(), end - at - start.size());
      text.replace(at, end - at + 1, joined(items_of(value), separator));
    }
  }
  return text;
}

std::vector<FilledMode> filled_modes(std::string_view system, const Trace& trace,
                                     const Resolver& resolver) {
  std::vector<FilledMode> modes;
  for (const SystemEntry& entry : system_entries()) {
    if (entry.system != system || entry.configuration.empty()) continue;
    for (const Values& values : values_of(entry, trace, resolver)) {
      modes.push_back({&entry, spelling_of(entry.spelling, values),
                       filled_configuration(entry.configuration, values)});
    }
  }
  return modes;
}

}  // namespace rematch
