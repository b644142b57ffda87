#include "policies/catalogue/systems.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"

namespace rematch {
namespace {

using Values = std::map<std::string, std::string>;

bool is_placeholder(std::string_view value) {
  return value.size() == 1 && value.front() >= 'A' && value.front() <= 'Z';
}

// Removes quotes around a value, as written in Python, TOML and YAML. Converts Python's True, False
// and None, which YAML files and command lines also use, to lower case.
std::string_view plain_value(std::string_view value) {
  const bool is_quoted = value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
                         value.find(value.front(), 1) == value.size() - 1;
  if (is_quoted) value = value.substr(1, value.size() - 2);
  if (value == "True") return "true";
  if (value == "None") return "none";
  return value == "False" ? "false" : value;
}

// Returns the arguments of a call by key. An argument without "=" is a key with an empty value.
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
    if (!values.emplace(key, plain_value(value)).second) return std::nullopt;
  }
  return values;
}

// Matches a user's call against a spelling of the table, such as "titan:full". Returns the values
// of the spelling's placeholders, or nullopt if the call does not match.
std::optional<Values> captures(std::string_view spelling, const Call& typed) {
  const Call pattern = *parse_call(spelling);
  if (pattern.name != typed.name) return std::nullopt;
  Values captured;
  // in "name(X)", the placeholder X stands for all arguments of the call
  if (pattern.arguments && is_placeholder(*pattern.arguments)) {
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

std::string with_captured(std::string_view stands_for, const Values& captured) {
  std::string text(stands_for);
  for (const auto& [letter, value] : captured) text = filled_in(text, "{" + letter + "}", value);
  return text;
}

// Alternative names that a system accepts for a key in the table.
struct OtherKey {
  std::string_view system;
  std::string_view other;
  std::string_view key;
};
constexpr OtherKey kOtherKeys[] = {{"torchtune", "enable", "enable_activation_checkpointing"},
                                   {"titan", "ac_mode", "mode"}};

// Replaces the key of an argument "KEY=VALUE" by the name that the table uses for this key.
std::string with_table_key(std::string_view system, std::string_view argument) {
  for (const OtherKey& known : kOtherKeys) {
    const bool has_other = known.system == system && argument.starts_with(known.other) &&
                           trimmed(argument.substr(known.other.size())).starts_with('=');
    if (has_other) {
      return std::string(known.key) + std::string(argument.substr(known.other.size()));
    }
  }
  return std::string(argument);
}

// The modes of the system `modalities` have two long spellings:
// "modalities(ac_variant=X_activation_checkpointing,layers_fqn=F,...)" and
// "modalities:X_activation_checkpointing(...)". Shortens both to "modalities:X(...)": drops
// layers_fqn, the suffix, and the key save_ops_keys.
void shorten_modalities(std::string& name, std::vector<std::string>& arguments) {
  constexpr std::string_view kSystem = "modalities";
  constexpr std::string_view kSuffix = "_activation_checkpointing";
  constexpr std::string_view kVariant = "ac_variant=";
  constexpr std::string_view kLayers = "layers_fqn=";
  constexpr std::string_view kKeysPrefix = "save_ops_keys=";
  if (!name.starts_with(kSystem)) return;
  std::erase_if(arguments, [&](const std::string& argument) {
    return argument.starts_with(kLayers) && argument.size() > kLayers.size();
  });
  const auto variant = std::ranges::find_if(
      arguments, [&](const std::string& argument) { return argument.starts_with(kVariant); });
  if (name == kSystem && variant != arguments.end()) {
    name.append(":").append(plain_value(trimmed(variant->substr(kVariant.size()))));
    arguments.erase(variant);
  }
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  for (std::string& argument : arguments) {
    if (argument.starts_with(kKeysPrefix)) argument.erase(0, kKeysPrefix.size());
  }
}

// Alternative names of training systems.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"torchtitan", "titan"}, {"transformers", "huggingface"}, {"megatron-lm", "megatron"}};

// Replaces an alternative name of a system by the system's name in the table: "torchtitan:full"
// becomes "titan:full", and "torchtitan" becomes "titan".
std::string with_table_name(std::string_view name) {
  for (const auto& [other, system] : kOtherNames) {
    if (name.substr(0, name.find(':')) == other) {
      return std::string(system) + std::string(name.substr(other.size()));
    }
  }
  return std::string(name);
}

// Rewrites a spelling with the names that the table of systems uses. Returns nullopt if the text is
// not a call. Text with neither ':' nor arguments names no mode and is returned unchanged.
std::optional<std::string> table_form(std::string_view text) {
  const std::optional<Call> call = parse_call(trimmed(text));
  if (!call) return std::nullopt;
  if (!call->arguments && call->name.find(':') == std::string_view::npos) return std::string(text);
  std::string name = with_table_name(call->name);
  if (const std::size_t colon = name.find(':'); colon != std::string::npos) {
    name = name.substr(0, colon + 1) + std::string(plain_value(name.substr(colon + 1)));
  }
  const auto parts = split_at_commas(call->arguments.value_or(""));
  if (!parts) return std::nullopt;
  std::vector<std::string> arguments;
  const std::string system = name.substr(0, name.find(':'));
  for (const std::string_view part : *parts) {
    arguments.push_back(with_table_key(system, trimmed(part)));
  }
  shorten_modalities(name, arguments);
  const bool has_arguments = call->arguments && !arguments.empty();
  return has_arguments ? name + "(" + joined(arguments, ",") + ")" : name;
}

std::string_view system_of(const Call& call) { return call.name.substr(0, call.name.find(':')); }

// An entry of the table, with the values of its placeholders.
struct Match {
  const SystemEntry* entry = nullptr;
  Values captured;
};

// Returns the mode that a spelling names. Returns nullopt if the spelling names no mode.
std::optional<Match> find_mode(std::string_view text) {
  const auto form = table_form(text);
  if (!form) return std::nullopt;
  const Call call = *parse_call(*form);
  for (const SystemEntry& entry : system_entries()) {
    if (auto captured = captures(entry.spelling, call)) return Match{&entry, std::move(*captured)};
  }
  return std::nullopt;
}

// Splits a spelling into words, without placeholders and numbers: "titan:full" gives "titan" and
// "full".
std::vector<std::string_view> words_of(std::string_view spelling) {
  std::vector<std::string_view> words;
  while (!spelling.empty()) {
    const std::size_t end = std::min(spelling.find_first_of(":(),=[] "), spelling.size());
    const std::string_view word = spelling.substr(0, end);
    const bool is_number = word.find_first_not_of("0123456789") == std::string_view::npos;
    if (!word.empty() && !is_number && !is_placeholder(word)) words.push_back(word);
    spelling.remove_prefix(std::min(end + 1, spelling.size()));
  }
  return words;
}

// Returns the known mode that differs from `text` by one misspelled word. Does not correct a word
// to a similar word that is probably a different name.
std::optional<std::string> without_misspelling(std::string_view text,
                                               const std::vector<std::string_view>& known) {
  std::vector<std::string_view> misspelled;
  for (const std::string_view word : words_of(text)) {
    if (std::find(known.begin(), known.end(), word) == known.end()) misspelled.push_back(word);
  }
  if (misspelled.size() != 1) return std::nullopt;
  const auto nearest = nearest_name(misspelled.front(), known);
  // short words must be equal: "flex" does not mean "flux"
  constexpr std::size_t kShortLetters = 4;
  if (!nearest || are_different_words(misspelled.front(), *nearest, kShortLetters)) {
    return std::nullopt;
  }
  std::string mode = filled_in(text, misspelled.front(), *nearest);
  return find_mode(mode) ? std::optional(std::move(mode)) : std::nullopt;
}

// Rejects a call whose system is known but whose mode is not.
std::optional<Rejected> no_such_mode(std::string_view text, const Call& call) {
  const std::string typed(system_of(call));
  const std::string system = with_table_name(typed);
  std::vector<std::string_view> words = {typed};
  for (const OtherKey& key : kOtherKeys) {
    if (key.system == system) words.push_back(key.other);
  }
  const std::size_t num_other = words.size();
  std::string known;
  for (const SystemEntry& entry : system_entries()) {
    if (system_of(*parse_call(entry.spelling)) != system) continue;
    const auto more = words_of(entry.spelling);
    words.insert(words.end(), more.begin(), more.end());
    known.append(known.empty() ? "; known: " : ", ").append(entry.spelling);
  }
  if (words.size() == num_other) return std::nullopt;
  const auto nearest = without_misspelling(text, words);
  if (nearest) known = "; did you mean '" + *nearest + "'?";
  return Rejected{typed + " has no mode " + in_quotes(text) + known};
}

std::variant<Policy, Rejected> policy_of(const SystemEntry& entry, std::string_view text,
                                         const std::string& ours) {
  if (ours.empty()) {
    return Rejected{std::string(text) + " is not supported: " + std::string(entry.pitfall.text)};
  }
  const std::string_view refusal = entry.refusal ? entry.refusal(words_of(ours)) : "";
  if (!refusal.empty()) {
    return Rejected{std::string(text) + " is refused: " + std::string(refusal)};
  }
  auto parsed = parse_policy(ours);
  if (auto* rejected = std::get_if<Rejected>(&parsed)) {
    return Rejected{std::string(text) + " stands for " + ours + ": " + rejected->message};
  }
  Policy& policy = std::get<Policy>(parsed);
  policy.name = text;
  if (entry.early_stop != EarlyStop::kAsInPolicy) {
    policy.early_stop = entry.early_stop == EarlyStop::kOn;
  }
  if (!entry.pitfall.text.empty() && entry.pitfall.shown == PitfallShown::kWhenUsed) {
    policy.expectations.insert(
        policy.expectations.begin(),
        {.warning = std::string(entry.pitfall.text), .concern = entry.pitfall.concern});
  }
  return parsed;
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

bool is_mode_of_system(std::string_view policy) {
  const auto form = table_form(policy);
  if (!form) return false;
  const std::optional<Call> call = parse_call(*form);
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name != call->name) continue;
    return entry.is_of_system || (call->arguments && is_mode_of_system(*call->arguments));
  }
  const auto entries = system_entries();
  return std::any_of(entries.begin(), entries.end(), [&](const SystemEntry& entry) {
    return system_of(*parse_call(entry.spelling)) == system_of(*call);
  });
}

Schedule usual_schedule(std::string_view policy) {
  return is_mode_of_system(policy) ? Schedule::kWholeRegion : Schedule::kOnDemand;
}

std::string_view schedule_note(std::string_view policy, Schedule schedule) {
  return schedule == Schedule::kOnDemand && is_mode_of_system(policy) ? "this engine only" : "";
}

std::optional<std::string> nearest_spelling(std::string_view text) {
  const std::optional<Call> call = parse_call(text);
  if (!call) return std::nullopt;
  std::vector<std::string_view> systems;
  for (const SystemEntry& entry : system_entries()) {
    systems.push_back(system_of(*parse_call(entry.spelling)));
  }
  const std::string_view typed = system_of(*call);
  const auto nearest = nearest_name(typed, systems);
  if (!nearest) return std::nullopt;
  std::string mode = *nearest + std::string(text.substr(typed.size()));
  return find_mode(mode) ? std::optional(std::move(mode)) : std::nullopt;
}

std::string_view pitfall_of(std::string_view spelling) {
  const auto mode = filled_mode(spelling);
  return mode ? mode->entry->pitfall.text : "";
}

bool is_refused_mode(std::string_view spelling) {
  const auto mode = filled_mode(spelling);
  return mode && mode->entry->stands_for.empty();
}

std::optional<FilledMode> filled_mode(std::string_view text) {
  const auto mode = find_mode(text);
  if (!mode) return std::nullopt;
  return FilledMode{mode->entry, std::string(text),
                    filled_configuration(mode->entry->configuration, mode->captured)};
}

std::optional<std::variant<Policy, Rejected>> parse_system_spelling(std::string_view text,
                                                                    const Call& call) {
  if (const auto mode = find_mode(text)) {
    return policy_of(*mode->entry, text, with_captured(mode->entry->stands_for, mode->captured));
  }
  return no_such_mode(text, call);
}

}  // namespace rematch
