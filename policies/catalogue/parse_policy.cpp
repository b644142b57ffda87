#include "policies/catalogue/catalogue.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/policy_json.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/split_at_commas.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr int kMaxArgument = 1'000'000;  // no model has as many layers

std::string usage(const PolicyFamilyEntry& found) {
  return std::string(found.entry.name) + std::string(found.entry.parameters);
}

std::variant<int, Rejected> parse_number(std::string_view text, int least,
                                         const std::string& what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error != std::errc::invalid_argument && end == text.data() + text.size();
  if (!is_number || error == std::errc::result_out_of_range || number < least ||
      number > kMaxArgument) {
    return Rejected{what + " is a whole number from " + std::to_string(least) + " to " +
                    std::to_string(kMaxArgument) + ", not " + in_quotes(text)};
  }
  return number;
}

std::variant<std::vector<int>, Rejected> parse_count(const PolicyFamilyEntry& found,
                                                     const Call& call) {
  const std::string form = usage(found) + ", for example " + std::string(found.entry.name) + "(2)";
  if (!call.arguments || call.arguments->empty())
    return Rejected{in_quotes(call.name) + " needs N: write " + form};
  const auto parts = *split_at_commas(*call.arguments);
  if (parts.size() > 1) {
    return Rejected{in_quotes(call.name) + " takes one argument, not " +
                    std::to_string(parts.size()) + ": write " + form};
  }
  auto number = parse_number(parts[0], 1, "N of " + usage(found));
  if (const auto* rejected = std::get_if<Rejected>(&number)) return *rejected;
  return std::vector<int>{std::get<int>(number)};
}

// Layer indices, sorted: `[0,2]`, or without the brackets `0,2`.
std::variant<std::vector<int>, Rejected> parse_list(const PolicyFamilyEntry& found,
                                                    const Call& call) {
  const std::string name(found.entry.name);
  if (!call.arguments || call.arguments->empty()) {
    return Rejected{in_quotes(name) + " needs layer indices: write " + name + "([0,2]), or " +
                    name + "([]) for none"};
  }
  std::string_view list = *call.arguments;
  if (list.front() == '[' && list.back() == ']') list = trimmed(list.substr(1, list.size() - 2));
  std::set<int> indices;
  if (list.empty()) return std::vector<int>{};
  const auto parts = split_at_commas(list);
  if (!parts) return Rejected{"the brackets of " + in_quotes(list) + " do not pair"};
  for (std::string_view part : *parts) {
    auto number = parse_number(part, 0, "a layer index of " + name);
    if (const auto* rejected = std::get_if<Rejected>(&number)) return *rejected;
    if (!indices.insert(std::get<int>(number)).second) {
      return Rejected{name + " names layer " + std::string(part) + " twice; name it once"};
    }
  }
  return std::vector<int>(indices.begin(), indices.end());
}

std::variant<std::vector<int>, Rejected> parse_arguments(const PolicyFamilyEntry& found,
                                                         const Call& call) {
  switch (found.arguments) {
    case PolicyArguments::kCount:
      return parse_count(found, call);
    case PolicyArguments::kList:
      return parse_list(found, call);
    case PolicyArguments::kText:
    case PolicyArguments::kNoArguments:
      break;
  }
  if (call.arguments && !call.arguments->empty()) {
    return Rejected{in_quotes(call.name) + " takes no arguments, not (" +
                    std::string(*call.arguments) + ")"};
  }
  return std::vector<int>{};
}

std::string canonical(const PolicyFamilyEntry& found, const std::vector<int>& arguments) {
  std::string text;
  for (int argument : arguments) {
    if (!text.empty()) text += ',';
    text += std::to_string(argument);
  }
  std::string name(found.entry.name);
  if (found.arguments == PolicyArguments::kNoArguments) return name;
  return found.arguments == PolicyArguments::kCount ? name + "(" + text + ")"
                                                    : name + "([" + text + "])";
}

std::string unknown(std::string_view text, std::string_view name) {
  std::vector<std::string_view> names;
  for (const PolicyFamilyEntry& known : policy_entries()) names.push_back(known.entry.name);
  // A slip in a system's name, where no name of ours is meant.
  if (const auto spelling = nearest_spelling(text); spelling && !nearest_name(name, names)) {
    return "unknown policy " + in_quotes(text) + "; did you mean '" + *spelling + "'?";
  }
  return "unknown policy " + in_quotes(name) + did_you_mean(name, names) +
         " `rematch list` and `rematch list --systems` show all; a policy file ends in .json";
}

// Does the policy's name spell another policy than it is. Reports name a policy by nothing else,
// and the reference is found by it.
bool has_name_of_another(const Policy& policy) {
  if (policy.name.ends_with(".json")) return false;  // would be read
  auto parsed = parse_policy(policy.name);
  auto* meant = std::get_if<Policy>(&parsed);
  if (meant == nullptr) return false;
  meant->name = policy.name;  // in a file not always the canonical one
  return *meant != policy;
}

std::variant<Policy, Rejected> parse_file(const std::string& path) {
  auto parsed = read_policy_file(path);
  const auto* policy = std::get_if<Policy>(&parsed);
  if (policy == nullptr || !has_name_of_another(*policy)) return parsed;
  return Rejected{path + ": name: " + in_quotes(policy->name) +
                  " is another policy of `rematch list`; give this one a name of its own"};
}

}  // namespace

std::variant<Policy, Rejected> parse_policy(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return Rejected{"a policy is empty; `rematch list` shows all"};
  if (text.ends_with(".json")) return parse_file(std::string(text));
  const std::optional<Call> call = parse_call(text);
  if (!call) {
    return Rejected{"policy " + in_quotes(text) +
                    " is not of the form name or name(arguments), for example nth_last(2)"};
  }
  const auto& all = policy_entries();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PolicyFamilyEntry& known) {
    return known.entry.name == call->name;
  });
  if (found == all.end()) {
    return is_system_spelling(*call) ? parse_system_spelling(text, *call)
                                     : Rejected{unknown(text, call->name)};
  }
  if (found->arguments == PolicyArguments::kText) {
    return found->make_from_text(call->arguments.value_or(std::string_view()));
  }
  const auto arguments = parse_arguments(*found, *call);
  if (const auto* rejected = std::get_if<Rejected>(&arguments)) return *rejected;
  Policy policy = found->make(std::get<std::vector<int>>(arguments));
  policy.name = canonical(*found, std::get<std::vector<int>>(arguments));
  return policy;
}

bool is_what_its_name_says(const Policy& policy) {
  if (policy.name.ends_with(".json")) return false;  // would be read
  const auto parsed = parse_policy(policy.name);
  const auto* meant = std::get_if<Policy>(&parsed);
  return meant != nullptr && *meant == policy;
}

std::variant<std::vector<Policy>, Rejected> parse_policies(std::string_view text) {
  const auto parts = split_at_commas(text);
  if (!parts) return Rejected{"the brackets of " + in_quotes(text) + " do not pair"};
  std::vector<Policy> policies;
  for (std::string_view part : *parts) {
    if (part.empty()) {
      return Rejected{"the list of policies " + in_quotes(text) +
                      " has an empty entry; write names with one comma between them"};
    }
    auto parsed = parse_policy(part);
    if (const auto* rejected = std::get_if<Rejected>(&parsed)) return *rejected;
    Policy& policy = std::get<Policy>(parsed);
    if (std::any_of(policies.begin(), policies.end(),
                    [&](const Policy& other) { return other.name == policy.name; })) {
      return Rejected{"policy " + policy.name + " is listed twice; list it once"};
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

}  // namespace rematch
