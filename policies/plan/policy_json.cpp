#include "policies/plan/policy_json.h"

#include <algorithm>
#include <array>

#include "policies/base/file.h"
#include "policies/base/text.h"
#include "policies/plan/policy_fields.h"

namespace rematch {
namespace {

// The form of a choice in a policy file: a word, or an object with one key.
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

// Returns the row of `spellings` for a kind. Each row has a kind, the name of this kind in files,
// and the type of its argument.
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

// A choice as read from a file: the matching table row, and the field that holds the argument.
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

}  // namespace

Json to_value(const BlockChoice& blocks) {
  return choice_to_json(kBlockRules, blocks.kind, blocks.n, blocks.indices);
}

void read_value(const JsonField& field, BlockChoice& blocks) {
  const auto found = find_choice(kBlockRules, field);
  blocks.kind = found.spelling.kind;
  if (found.spelling.argument == ChoiceArgument::kCount) blocks.n = found.argument.integer32(1);
  if (found.spelling.argument == ChoiceArgument::kList) read_value(found.argument, blocks.indices);
}

Json to_value(const RegionChoice& regions) {
  return choice_to_json(kRegions, regions.kind, regions.n, regions.patterns);
}

void read_value(const JsonField& field, RegionChoice& regions) {
  const auto found = find_choice(kRegions, field);
  regions.kind = found.spelling.kind;
  if (found.spelling.argument == ChoiceArgument::kCount) regions.n = found.argument.integer32(1);
  if (found.spelling.argument != ChoiceArgument::kList) return;
  regions.patterns = found.argument.strings();
  if (regions.patterns.empty()) {
    found.argument.fail("is empty; list scopes, or write \"block\" for whole blocks");
  }
}

Json to_value(CollectiveRule rule) { return spelling_of(kCollectives, rule).name; }

void read_value(const JsonField& field, CollectiveRule& rule) {
  rule = find_choice(kCollectives, field).spelling.kind;
}

Json to_value(const Selector& selector) { return to_string(selector); }

void read_value(const JsonField& field, Selector& selector) {
  auto parsed = parse_selector(field.string());
  if (const auto* rejected = std::get_if<Rejected>(&parsed)) field.fail(rejected->message);
  selector = std::get<Selector>(std::move(parsed));
}

Json to_value(Alternation::Keep keep) { return keep == Alternation::Keep::kOdd ? "odd" : "even"; }

void read_value(const JsonField& field, Alternation::Keep& keep) {
  const std::string& text = field.string();
  if (text != "odd" && text != "even") {
    field.fail("\"" + text + "\" is out of range; allowed: \"odd\" and \"even\"");
  }
  keep = text == "odd" ? Alternation::Keep::kOdd : Alternation::Keep::kEven;
}

void read_value(const JsonField& field, Alternation& alternate) {
  require_known_keys(field, alternate);
  read_fields(field, alternate);
  if (alternate.selectors.empty())
    field.at("selectors").fail("is empty; list the ops to alternate");
}

namespace {

bool is_control(char letter) { return static_cast<unsigned char>(letter) < ' '; }

// Rejects a list that has no effect because of the policy's other fields. Such a list is a mistake
// of the user.
void refuse_contradictions(const JsonField& root, const Policy& policy) {
  if (!policy.inverse && !policy.recompute.empty()) {
    root.fail(
        "\"recompute\" requires \"inverse\": true; without it every op that "
        "\"save\" does not pick is recomputed");
  }
  if (policy.inverse && (!policy.save.empty() || policy.alternate)) {
    root.fail(
        "\"inverse\": true keeps everything but \"recompute\"; remove \"save\" and "
        "\"alternate\"");
  }
  if (policy.save_regions.empty() && !policy.recompute_regions.empty()) {
    root.fail("\"recompute_regions\" excludes ops from \"save_regions\", which is empty");
  }
  if (policy.save_regions.empty() && policy.save_last_add) {
    root.fail("\"save_last_add\" adds to \"save_regions\", which is empty");
  }
  if (!policy.save_regions.empty() &&
      (policy.inverse || !policy.save.empty() || policy.alternate)) {
    root.fail(
        "\"save_regions\" decides what is kept; remove \"save\", \"alternate\" and \"inverse\"");
  }
}

}  // namespace

Json policy_to_json(const Policy& policy) {
  Json json = document_of(kPolicySchema, policy);
  if (policy.reshard_after_forward) json.erase("reshard_after_forward");
  return json;
}

Policy policy_from_json(const Json& json) {
  require_schema(json, kPolicySchema.kind);
  const JsonField root(json);
  Policy policy;
  require_known_keys(root, policy, "schema");
  read_fields(root, policy);
  if (policy.name.empty()) root.at("name").fail("is empty; reports identify a policy by its name");
  if (std::any_of(policy.name.begin(), policy.name.end(), is_control)) {
    root.at("name").fail(in_quotes(policy.name) +
                         " contains control characters, which break lines and tables; remove them");
  }
  if (root.find("split_only_with") && policy.regions.kind != RegionChoice::Kind::kScopes) {
    root.at("split_only_with").fail("requires \"regions\" to list scopes");
  }
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
  } catch (const std::runtime_error& error) {  // FileError or FormatError; both name the file
    return Rejected{error.what()};
  }
}

}  // namespace rematch
