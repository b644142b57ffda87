#include "policies/catalogue/systems.h"

#include <algorithm>
#include <map>
#include <optional>

#include "policies/catalogue/catalogue.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/split_at_commas.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

using Values = std::map<std::string, std::string>;

bool is_placeholder(std::string_view value) {
  return value.size() == 1 && value.front() >= 'A' && value.front() <= 'Z';
}

// The arguments of a call by key; one without a key stands under its own text, with no value.
std::optional<Values> values_of(const std::optional<std::string_view>& arguments) {
  Values values;
  if (!arguments || arguments->empty()) return values;
  const auto parts = split_at_commas(*arguments);
  if (!parts) return std::nullopt;
  for (const std::string_view part : *parts) {
    const std::size_t sign = part.find('=');
    const std::string key(trimmed(part.substr(0, sign)));
    const std::string_view value =
        sign == std::string_view::npos ? std::string_view() : trimmed(part.substr(sign + 1));
    if (!values.emplace(key, value).second) return std::nullopt;
  }
  return values;
}

// What a spelling's placeholders take from the call; nullopt: another spelling.
std::optional<Values> captures(std::string_view spelling, const Call& typed) {
  const Call pattern = *parse_call(spelling);
  if (pattern.name != typed.name) return std::nullopt;
  Values captured;
  if (pattern.arguments && is_placeholder(*pattern.arguments)) {  // takes all there is
    if (!typed.arguments || typed.arguments->empty()) return std::nullopt;
    captured[std::string(*pattern.arguments)] = *typed.arguments;
    return captured;
  }
  const auto wanted = values_of(pattern.arguments);
  const auto found = values_of(typed.arguments);
  if (!wanted || !found || wanted->size() != found->size()) return std::nullopt;
  for (const auto& [key, value] : *wanted) {
    const auto same = found->find(key);
    if (same == found->end()) return std::nullopt;
    if (is_placeholder(value)) {
      captured[value] = same->second;
    } else if (value != same->second) {
      return std::nullopt;
    }
  }
  return captured;
}

std::string filled_in(std::string_view stands_for, const Values& captured) {
  std::string text(stands_for);
  for (const auto& [letter, value] : captured) {
    const std::string hole = "{" + letter + "}";
    const std::size_t at = text.find(hole);
    if (at != std::string::npos) text.replace(at, hole.size(), value);
  }
  return text;
}

std::string_view system_of(const Call& call) { return call.name.substr(0, call.name.find(':')); }

// The system's name is right, so only what follows it is compared.
Rejected no_such_mode(std::string_view text, const Call& call) {
  const std::string system(system_of(call));
  std::vector<std::string_view> modes;
  std::string known;
  for (const SystemEntry& entry : system_entries()) {
    if (system_of(*parse_call(entry.spelling)) != system) continue;
    modes.push_back(entry.spelling.substr(system.size()));
    known.append(known.empty() ? "; known: " : ", ").append(entry.spelling);
  }
  const auto nearest = nearest_name(text.substr(system.size()), modes);
  if (nearest) known = "; did you mean '" + system + *nearest + "'?";
  return Rejected{system + " has no mode " + in_quotes(text) + known};
}

}  // namespace

std::vector<std::string_view> systems_with(std::string_view policy_name) {
  std::vector<std::string_view> systems;
  for (const SystemEntry& entry : system_entries()) {
    if (entry.stands_for.substr(0, entry.stands_for.find('(')) != policy_name) continue;
    if (systems.empty() || systems.back() != entry.system) systems.push_back(entry.system);
  }
  return systems;
}

const SystemEntry* find_system_entry(const Call& call) {
  const auto all = system_entries();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SystemEntry& entry) {
    return captures(entry.spelling, call).has_value();
  });
  return found == all.end() ? nullptr : &*found;
}

std::string catalogue_spelling(std::string_view policy) {
  const std::optional<Call> call = parse_call(policy);
  const SystemEntry* entry = call ? find_system_entry(*call) : nullptr;
  if (entry == nullptr) return std::string(policy);
  return filled_in(entry->stands_for, *captures(entry->spelling, *call));
}

std::optional<std::string> nearest_spelling(std::string_view text) {
  std::vector<std::string_view> known;
  for (const SystemEntry& entry : system_entries()) known.push_back(entry.spelling);
  return nearest_name(text, known);
}

bool is_system_spelling(const Call& call) {
  const auto all = system_entries();
  return std::any_of(all.begin(), all.end(), [&](const SystemEntry& entry) {
    return system_of(*parse_call(entry.spelling)) == system_of(call);
  });
}

std::variant<Policy, Rejected> parse_system_spelling(std::string_view text, const Call& call) {
  const SystemEntry* entry = find_system_entry(call);
  if (entry == nullptr) return no_such_mode(text, call);
  if (entry->stands_for.empty()) {
    return Rejected{std::string(text) + " is refused: " + std::string(entry->trap)};
  }
  const std::string ours = filled_in(entry->stands_for, *captures(entry->spelling, call));
  auto parsed = parse_policy(ours);
  if (auto* rejected = std::get_if<Rejected>(&parsed)) {
    return Rejected{std::string(text) + " stands for " + ours + ": " + rejected->message};
  }
  Policy& policy = std::get<Policy>(parsed);
  policy.name = text;
  if (entry->early_stop != EarlyStop::kAsInPolicy) {
    policy.early_stop = entry->early_stop == EarlyStop::kOn;
  }
  return parsed;
}

}  // namespace rematch
