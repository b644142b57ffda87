#include "policies/catalogue/catalogue.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families/families.h"
#include "policies/catalogue/systems.h"
#include "policies/plan/policy_json.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/joined.h"
#include "policies/trace/json.h"
#include "policies/trace/split_at_commas.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr int kMaxArgument = 1'000'000;  // no model has as many layers

std::vector<CatalogueEntry> all_families() {
  std::vector<CatalogueEntry> all;
  append(all, layer_policies());
  append(all, save_list_policies());
  append(all, alternating_policies());
  append(all, region_policies());
  append(all, module_policies());
  append(all, maxtext_policies());
  return all;
}

// A call of an entry: checks and reads the arguments for its factory, and names the policy.
class Caller {
 public:
  Caller(const CatalogueEntry& entry, std::string_view arguments)
      : entry_(entry), name_(entry.name), arguments_(arguments) {}

  std::variant<Policy, Rejected> make() const {
    return std::visit([this](const auto& factory) { return call(factory); }, entry_.make);
  }

 private:
  using Made = std::variant<Policy, Rejected>;
  using Words = std::vector<std::string>;

  Made call(Policy (*factory)()) const {
    if (arguments_.empty()) return named(factory(), "");
    return Rejected{in_quotes(name_) + " takes no arguments, not (" + std::string(arguments_) +
                    ")"};
  }

  Made call(Policy (*factory)(int)) const {
    const std::string form = name_ + "(N), for example " + name_ + "(2)";
    if (arguments_.empty()) return Rejected{in_quotes(name_) + " needs N: write " + form};
    const auto parts = *split_at_commas(arguments_);
    if (parts.size() > 1) {
      return Rejected{in_quotes(name_) + " takes one argument, not " +
                      std::to_string(parts.size()) + ": write " + form};
    }
    const auto n = parse_number(parts[0], 1, "N of " + name_ + "(N)");
    if (const auto* rejected = std::get_if<Rejected>(&n)) return *rejected;
    return named(factory(std::get<int>(n)), list({std::to_string(std::get<int>(n))}));
  }

  Made call(Policy (*factory)(const std::vector<int>&)) const {
    const auto given = words();
    if (const auto* rejected = std::get_if<Rejected>(&given)) return *rejected;
    std::vector<int> layers;
    for (const std::string& word : std::get<Words>(given)) {
      const auto layer = parse_number(word, 0, "a layer index of " + name_);
      if (const auto* rejected = std::get_if<Rejected>(&layer)) return *rejected;
      if (std::find(layers.begin(), layers.end(), std::get<int>(layer)) != layers.end()) {
        return Rejected{name_ + " names layer " + word + " twice; name it once"};
      }
      layers.push_back(std::get<int>(layer));
    }
    std::sort(layers.begin(), layers.end());
    Words sorted;
    for (const int layer : layers) sorted.push_back(std::to_string(layer));
    return named(factory(layers), list(sorted));
  }

  Made call(std::variant<Policy, Rejected> (*factory)(const std::vector<std::string>&)) const {
    const auto given = words();
    if (const auto* rejected = std::get_if<Rejected>(&given)) return *rejected;
    auto made = factory(std::get<Words>(given));
    if (const auto* rejected = std::get_if<Rejected>(&made)) return *rejected;
    return named(std::get<Policy>(std::move(made)), list(std::get<Words>(given)));
  }

  bool is_bracketed() const { return entry_.parameters.starts_with("(["); }

  std::variant<Words, Rejected> words() const {
    if (arguments_.empty() && is_bracketed()) {
      return Rejected{in_quotes(name_) + " needs a list: write " + name_ +
                      std::string(entry_.parameters) + "; [] is an empty one"};
    }
    auto words = parse_words(arguments_);
    if (!words) return Rejected{"the brackets of " + in_quotes(arguments_) + " do not pair"};
    return *std::move(words);
  }

  std::string list(const Words& words) const {
    std::string text = is_bracketed() ? "([" : "(";
    return text.append(joined(words, ",")).append(is_bracketed() ? "])" : ")");
  }

  Policy named(Policy policy, const std::string& arguments) const {
    if (policy.name.empty()) policy.name = name_ + arguments;
    return policy;
  }

  static std::variant<int, Rejected> parse_number(std::string_view text, int least,
                                                  const std::string& what) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && number >= least && number <= kMaxArgument) return number;
    return Rejected{what + " is a whole number from " + std::to_string(least) + " to " +
                    std::to_string(kMaxArgument) + ", not " + in_quotes(text)};
  }

  const CatalogueEntry& entry_;
  std::string name_;
  std::string_view arguments_;
};

std::string unknown(std::string_view text, std::string_view name) {
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : catalogue()) names.push_back(entry.name);
  // A slip in a system's name, where no name of the catalogue is near.
  if (const auto spelling = nearest_spelling(text); spelling && !nearest_name(name, names)) {
    return "unknown policy " + in_quotes(text) + "; did you mean '" + *spelling + "'?";
  }
  return "unknown policy " + in_quotes(name) + did_you_mean(name, names) +
         " `rematch list` and `rematch list --systems` show all; a policy file ends in .json";
}

// Reports show a policy by its name alone, and a run finds its reference by it, so a file may not
// have the name of another policy.
std::variant<Policy, Rejected> policy_of_file(const std::string& path) {
  auto read = read_policy_file(path);
  const auto* policy = std::get_if<Policy>(&read);
  if (policy == nullptr || policy->name.ends_with(".json")) return read;
  auto known = parse_policy(policy->name);
  auto* namesake = std::get_if<Policy>(&known);
  if (namesake == nullptr) return read;
  namesake->name = policy->name;  // in a file not always the canonical one
  if (policy_to_json(*namesake) == policy_to_json(*policy)) return known;
  return Rejected{path + ": name: " + in_quotes(policy->name) +
                  " is another policy of `rematch list`; give this one a name of its own"};
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = all_families();
  return entries;
}

std::variant<Policy, Rejected> parse_policy(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return Rejected{"a policy is empty; `rematch list` shows all"};
  if (text.ends_with(".json")) return policy_of_file(std::string(text));
  const std::optional<Call> call = parse_call(text);
  if (!call) {
    return Rejected{"policy " + in_quotes(text) +
                    " is not of the form name or name(arguments), for example nth_last(2)"};
  }
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == call->name) return Caller(entry, call->arguments.value_or("")).make();
  }
  return is_system_spelling(*call) ? parse_system_spelling(text, *call)
                                   : Rejected{unknown(text, call->name)};
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
