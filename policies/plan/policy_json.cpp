#include "policies/plan/policy_json.h"

#include <algorithm>
#include <array>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

// How a choice is spelled: a word, or an object with one key.
template <class Kind>
struct Spelling {
  Kind kind;
  std::string_view name;
  ChoiceArgument argument;
};

constexpr std::array<Spelling<RegionChoice::Kind>, 4> kRegions = {{
    {RegionChoice::Kind::kBlock, "block", ChoiceArgument::kNone},
    {RegionChoice::Kind::kRoot, "root", ChoiceArgument::kNone},
    {RegionChoice::Kind::kSegments, "segments", ChoiceArgument::kCount},
    {RegionChoice::Kind::kScopes, "scopes", ChoiceArgument::kList},
}};

constexpr std::array<Spelling<CollectiveRule>, 3> kCollectives = {{
    {CollectiveRule::kAsListed, "as_listed", ChoiceArgument::kNone},
    {CollectiveRule::kKeep, "keep", ChoiceArgument::kNone},
    {CollectiveRule::kReissue, "reissue", ChoiceArgument::kNone},
}};

// `spellings`: a table whose rows have a kind, a name and an argument.
template <class Kind>
const auto& spelling_of(const auto& spellings, Kind kind) {
  return *std::find_if(spellings.begin(), spellings.end(),
                       [&](const auto& spelling) { return spelling.kind == kind; });
}

template <class Kind, class List>
Json choice_to_json(const auto& spellings, Kind kind, int n, const List& list) {
  const auto& spelling = spelling_of(spellings, kind);
  if (spelling.argument == ChoiceArgument::kNone) return spelling.name;
  Json json = Json::object();
  json[std::string(spelling.name)] =
      spelling.argument == ChoiceArgument::kCount ? Json(n) : Json(list);
  return json;
}

// The spelling in the file, and where its argument is.
template <class Row>
struct FoundChoice {
  const Row& spelling;
  JsonField argument;
};

template <class Spellings, class Row = typename Spellings::value_type>
FoundChoice<Row> find_choice(const Spellings& spellings, const JsonField& field) {
  const bool is_word = field.json().is_string();
  if (!is_word && (!field.json().is_object() || field.json().size() != 1)) {
    field.fail("expected a word or an object with one key, such as {\"" +
               std::string(spellings.back().name) + "\": ...}");
  }
  const std::string name = is_word ? field.string() : field.json().begin().key();
  for (const Row& spelling : spellings) {
    if (spelling.name != name) continue;
    if (is_word && spelling.argument != ChoiceArgument::kNone) {
      field.fail("\"" + name + "\" needs an argument: write {\"" + name +
                 "\": " + (spelling.argument == ChoiceArgument::kCount ? "2}" : "[...]}"));
    }
    if (!is_word && spelling.argument == ChoiceArgument::kNone) {
      field.fail("\"" + name + "\" takes no argument: write \"" + name + "\"");
    }
    return {spelling, is_word ? field : field.at(name)};
  }
  std::vector<std::string_view> known;
  for (const Row& spelling : spellings) known.push_back(spelling.name);
  field.fail("unknown choice \"" + name + "\"" + did_you_mean(name, known));
}

BlockChoice blocks_from_json(const JsonField& field) {
  const auto found = find_choice(kBlockRules, field);
  BlockChoice choice;
  choice.kind = found.spelling.kind;
  if (found.spelling.argument == ChoiceArgument::kCount) choice.n = found.argument.integer32(1);
  if (found.spelling.argument == ChoiceArgument::kList) {
    for (const JsonField& index : found.argument.elements()) {
      choice.indices.push_back(index.integer32(0));
    }
  }
  return choice;
}

RegionChoice regions_from_json(const JsonField& field) {
  const auto found = find_choice(kRegions, field);
  RegionChoice choice;
  choice.kind = found.spelling.kind;
  if (found.spelling.argument == ChoiceArgument::kCount) choice.n = found.argument.integer32(1);
  if (found.spelling.argument == ChoiceArgument::kList) {
    choice.patterns = found.argument.strings();
    if (choice.patterns.empty())
      found.argument.fail("names no scope; for whole blocks write \"block\"");
  }
  return choice;
}

Json selectors_to_json(const std::vector<Selector>& selectors) {
  Json json = Json::array();
  for (const Selector& selector : selectors) json.push_back(to_string(selector));
  return json;
}

std::vector<Selector> selectors_from_json(const std::optional<JsonField>& field) {
  std::vector<Selector> selectors;
  if (!field) return selectors;
  for (const JsonField& element : field->elements()) {
    auto parsed = parse_selector(element.string());
    if (const auto* rejected = std::get_if<Rejected>(&parsed)) element.fail(rejected->message);
    selectors.push_back(std::get<Selector>(std::move(parsed)));
  }
  return selectors;
}

Json alternation_to_json(const Alternation& alternate) {
  Json json = {{"selectors", selectors_to_json(alternate.selectors)},
               {"exclude", selectors_to_json(alternate.exclude)},
               {"keep", alternate.keep == Alternation::Keep::kOdd ? "odd" : "even"}};
  if (alternate.exclude_same_shapes) json["exclude_same_shapes"] = true;
  return json;
}

Alternation alternation_from_json(const JsonField& field) {
  field.require_known_keys({"selectors", "exclude", "exclude_same_shapes", "keep"});
  Alternation alternate;
  alternate.selectors = selectors_from_json(field.at("selectors"));
  if (alternate.selectors.empty()) field.at("selectors").fail("names no op to alternate");
  alternate.exclude = selectors_from_json(field.find("exclude"));
  if (const auto keep = field.find("keep")) {
    if (keep->string() != "odd" && keep->string() != "even") {
      keep->fail("\"" + keep->string() + "\" is out of range; allowed are \"odd\" and \"even\"");
    }
    if (keep->string() == "even") alternate.keep = Alternation::Keep::kEven;
  }
  if (const auto same = field.find("exclude_same_shapes")) {
    alternate.exclude_same_shapes = same->boolean();
  }
  return alternate;
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < ' '; }

bool flag_from_json(const JsonField& root, std::string_view key, bool otherwise) {
  const auto field = root.find(key);
  return field ? field->boolean() : otherwise;
}

// Lists that the other lists make meaningless are mistakes, not preferences.
void refuse_contradictions(const JsonField& root, const Policy& policy) {
  if (!policy.inverse && !policy.recompute.empty()) {
    root.fail(
        "\"recompute\" has a meaning only with \"inverse\": true; without it every op that "
        "\"save\" does not pick is recomputed");
  }
  if (policy.inverse && (!policy.save.empty() || policy.alternate)) {
    root.fail(
        "\"inverse\": true keeps everything but \"recompute\"; remove \"save\" and "
        "\"alternate\"");
  }
}

}  // namespace

Json policy_to_json(const Policy& policy) {
  Json json = {{"schema", schema_name(kPolicySchema)}, {"name", policy.name}};
  json["blocks"] =
      choice_to_json(kBlockRules, policy.blocks.kind, policy.blocks.n, policy.blocks.indices);
  json["regions"] =
      choice_to_json(kRegions, policy.regions.kind, policy.regions.n, policy.regions.patterns);
  if (!policy.regions.only_with.empty()) json["split_only_with"] = policy.regions.only_with;
  json["save"] = selectors_to_json(policy.save);
  if (!policy.offload.empty()) json["offload"] = selectors_to_json(policy.offload);
  if (!policy.exclude.empty()) json["exclude"] = selectors_to_json(policy.exclude);
  if (policy.alternate) json["alternate"] = alternation_to_json(*policy.alternate);
  if (policy.inverse) json["inverse"] = true;
  if (!policy.recompute.empty()) json["recompute"] = selectors_to_json(policy.recompute);
  if (policy.exact_names) json["exact_names"] = true;
  if (policy.collectives != CollectiveRule::kAsListed) {
    json["collectives"] = spelling_of(kCollectives, policy.collectives).name;
  }
  if (!policy.reshard_after_forward) json["reshard_after_forward"] = false;
  if (policy.offload_saved) json["offload_saved"] = true;
  if (policy.offload_inputs) json["offload_inputs"] = true;
  if (policy.offload_at_least.count > 0) {
    json["offload_at_least_bytes"] = policy.offload_at_least.count;
  }
  json["early_stop"] = policy.early_stop;
  if (policy.no_effect_is_intended) json["no_effect_is_intended"] = true;
  return json;
}

Policy policy_from_json(const Json& json) {
  require_schema(json, kPolicySchema.kind);
  const JsonField root(json);
  root.require_known_keys({"schema", "name", "blocks", "regions", "split_only_with", "save",
                           "offload", "exclude", "alternate", "inverse", "recompute", "exact_names",
                           "collectives", "reshard_after_forward", "offload_saved",
                           "offload_inputs", "offload_at_least_bytes", "early_stop",
                           "no_effect_is_intended"});
  Policy policy;
  policy.name = root.at("name").string();
  if (policy.name.empty()) root.at("name").fail("is empty; reports name the policy by it");
  if (std::any_of(policy.name.begin(), policy.name.end(), is_control)) {
    root.at("name").fail(in_quotes(policy.name) +
                         " has control characters, and stands in lines and tables; leave them out");
  }
  if (const auto blocks = root.find("blocks")) policy.blocks = blocks_from_json(*blocks);
  if (const auto regions = root.find("regions")) policy.regions = regions_from_json(*regions);
  if (const auto only_with = root.find("split_only_with")) {
    policy.regions.only_with = only_with->string();
    if (policy.regions.kind != RegionChoice::Kind::kScopes) {
      only_with->fail("has a meaning only where \"regions\" names scopes");
    }
  }
  policy.save = selectors_from_json(root.find("save"));
  policy.offload = selectors_from_json(root.find("offload"));
  policy.exclude = selectors_from_json(root.find("exclude"));
  if (const auto alternate = root.find("alternate")) {
    policy.alternate = alternation_from_json(*alternate);
  }
  policy.inverse = flag_from_json(root, "inverse", false);
  policy.recompute = selectors_from_json(root.find("recompute"));
  policy.exact_names = flag_from_json(root, "exact_names", false);
  if (const auto collectives = root.find("collectives")) {
    policy.collectives = find_choice(kCollectives, *collectives).spelling.kind;
  }
  policy.reshard_after_forward = flag_from_json(root, "reshard_after_forward", true);
  policy.offload_saved = flag_from_json(root, "offload_saved", false);
  policy.offload_inputs = flag_from_json(root, "offload_inputs", false);
  if (const auto least = root.find("offload_at_least_bytes")) {
    policy.offload_at_least = {least->count()};
  }
  policy.early_stop = flag_from_json(root, "early_stop", true);
  policy.no_effect_is_intended = flag_from_json(root, "no_effect_is_intended", false);
  refuse_contradictions(root, policy);
  return policy;
}

std::variant<Policy, Rejected> read_policy_file(const std::string& path) {
  try {
    const Json json = read_json_file(path);
    try {
      return policy_from_json(json);
    } catch (const FormatError& error) {
      return Rejected{path + ": " + error.what()};
    }
  } catch (const std::runtime_error& error) {  // FileError or FormatError: they name the file
    return Rejected{error.what()};
  }
}

}  // namespace rematch
