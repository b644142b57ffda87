#include "reports/schema/validate.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/schema/embedded.h"

namespace rematch {
namespace {

using Document = nlohmann::json;  // the JSON type that valijson's adapter reads
using Adapter = valijson::adapters::NlohmannJsonAdapter;
using Error = valijson::ValidationResults::Error;

constexpr std::string_view kFileEnding = ".schema.json";
constexpr std::size_t kLongestQuote = 40;
constexpr std::size_t kLongestPath = 100;
constexpr std::size_t kLongestProblem = 200;

Document parsed_schema(std::string_view kind) {
  const std::optional<std::string_view> text = schema_text(kind);
  if (!text) throw std::logic_error("no schema '" + std::string(kind) + "' is built in");
  return Document::parse(*text);
}

// maximum length of a chain of references; the committed schemas need two
constexpr int kMaxReferences = 20;

struct Place {
  std::string kind;  // schema to which references without a file name refer
  Document node;
};

// Follows a reference such as "#/definitions/status" or "point.schema.json#/definitions/status".
Place follow(const Place& place) {
  const std::string reference = place.node.at("$ref").get<std::string>();
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  const std::string file = reference.substr(0, hash);
  Place target{file.empty() ? place.kind : file.substr(0, file.find('.')), {}};
  const Document root = parsed_schema(target.kind);
  const std::string pointer = reference.substr(std::min(hash + 1, reference.size()));
  target.node = root.at(Document::json_pointer(pointer));
  return target;
}

Place resolved(Place place) {
  for (int hop = 0; hop < kMaxReferences && place.node.is_object() && place.node.contains("$ref");
       ++hop) {
    place = follow(place);
  }
  return place;
}

// Returns the schema of an object's member, or of a list's elements.
std::optional<Document> next_node(const Document& node, const std::string& step) {
  if (!node.is_object()) return std::nullopt;
  if (node.contains("properties") && node["properties"].contains(step)) {
    return node["properties"][step];
  }
  for (const char* rest : {"items", "additionalProperties"}) {
    if (node.contains(rest) && node[rest].is_object()) return node[rest];
  }
  return std::nullopt;
}

std::optional<Place> next_place(const Place& place, const std::string& step) {
  if (const auto node = next_node(place.node, step)) return resolved({place.kind, *node});
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    if (!place.node.is_object() || !place.node.contains(choice)) continue;
    for (const Document& alternative : place.node[choice]) {
      const Place other = resolved({place.kind, alternative});
      if (const auto node = next_node(other.node, step)) {
        return resolved({other.kind, *node});
      }
    }
  }
  return std::nullopt;
}

std::string type_words(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords = {
      {{"string", "a string"},
       {"integer", "a whole number"},
       {"number", "a number"},
       {"boolean", "true or false"},
       {"object", "an object"},
       {"array", "a list"},
       {"null", "null"}}};
  for (const auto& [name, words] : kWords) {
    if (name == type) return std::string(words);
  }
  return type;
}

std::string alternatives(const Document& values) {
  std::string text;
  for (const Document& value : values) {
    text += text.empty() ? "" : ", ";
    text += value.is_string() ? value.get<std::string>() : value.dump();
  }
  return text;
}

std::string types_of(const Document& node) {
  const Document& type = node.at("type");
  if (!type.is_array()) return type_words(type.get<std::string>());
  std::string text;
  for (const Document& name : type) {
    text += (text.empty() ? "" : " or ") + type_words(name.get<std::string>());
  }
  return text;
}

// Returns text such as "from 0 to 4" or "at least 1".
std::string range_words(const Document& node, const char* least, const char* most) {
  if (node.contains(least) && node.contains(most)) {
    return node[least] == node[most] ? node[least].dump()
                                     : "from " + node[least].dump() + " to " + node[most].dump();
  }
  if (node.contains(least)) return "at least " + node[least].dump();
  return "at most " + node[most].dump();
}

bool has_either(const Document& node, const char* left, const char* right) {
  return node.contains(left) || node.contains(right);
}

// Returns the part of the schema of `kind` that applies to the value at `path`, with references
// resolved. Absent if the schema requires nothing there. `path` consists of member names and
// element indices.
std::optional<Document> schema_at(std::string_view kind, const std::vector<std::string>& path) {
  Place place = resolved({std::string(kind), parsed_schema(kind)});
  for (const std::string& step : path) {
    std::optional<Place> next = next_place(place, step);
    if (!next) return std::nullopt;
    place = *std::move(next);
  }
  return place.node;
}

// Replaces the library's message, which only names the keyword that failed, by a message for users.
// Returns `description` unchanged if the keyword is unknown.
std::string expected_words(const std::string& description, const Document& node) {
  const auto says = [&](std::string_view part) {
    return description.find(part) != std::string::npos;
  };
  if (!node.is_object()) return description;
  if (says("'type' constraint") && node.contains("type")) return "expected " + types_of(node);
  if (says("any enum values") && node.contains("enum")) {
    return "expected one of " + alternatives(node["enum"]);
  }
  if (says("'pattern' constraint") && node.contains("pattern")) {
    return "expected text of the form " + node["pattern"].get<std::string>();
  }
  if (says("Expected number") && has_either(node, "minimum", "maximum")) {
    return "expected a number " + range_words(node, "minimum", "maximum");
  }
  if (says("String should be") && has_either(node, "minLength", "maxLength")) {
    return "expected text whose length in characters is " +
           range_words(node, "minLength", "maxLength");
  }
  if (says("Array should contain") && has_either(node, "minItems", "maxItems")) {
    return "expected a list whose length is " + range_words(node, "minItems", "maxItems");
  }
  return description;
}

// A schema may refer to another schema by its file name. All schemas are built in.
const Document* fetch_schema(const std::string& file) {
  const std::string_view name = file;
  // start of the file name; 0 if the text has no slash
  const std::size_t slash = name.rfind('/') + 1;
  if (!name.ends_with(kFileEnding)) return nullptr;
  return std::make_unique<Document>(
             parsed_schema(name.substr(slash, name.size() - slash - kFileEnding.size())))
      .release();
}

void free_schema(const Document* document) { std::unique_ptr<const Document> owner(document); }

std::string quoted(const Document& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  return on_one_line(value.dump(-1, ' ', /*ensure_ascii=*/true, Document::error_handler_t::replace),
                     kLongestQuote);
}

// Returns the member names and indices in an error's path, which valijson writes as
// <root>[points][0][key].
std::vector<std::string> steps_of(const Error& error) {
  std::vector<std::string> steps;
  for (std::size_t depth = 1; depth < error.context.size(); ++depth) {
    const std::string& step = error.context[depth];
    steps.push_back(step.substr(1, step.size() - 2));
  }
  return steps;
}

// Returns the path as text, such as "points[0].key". Moves `value` from the root to the value at
// that path.
std::string readable_path(const std::vector<std::string>& steps, const Document*& value) {
  std::string path;
  for (const std::string& step : steps) {
    if (value->is_array()) {
      path += "[" + step + "]";
      value = &value->at(std::stoul(step));
    } else {
      path.append(path.empty() ? "" : ".").append(step);
      value = &value->at(step);
    }
  }
  return on_one_line(path, kLongestPath);
}

// Returns the key of the library's message "Missing required property 'key'."
std::optional<std::string> missing_key(const std::string& description) {
  constexpr std::string_view kStart = "Missing required property ";
  if (!description.starts_with(kStart) || !description.ends_with('.')) return std::nullopt;
  return description.substr(kStart.size(), description.size() - kStart.size() - 1);
}

std::string one_line(std::string_view kind, const Error& error, const Document& document) {
  const Document* value = &document;
  const std::vector<std::string> steps = steps_of(error);
  const std::string path = readable_path(steps, value);
  std::string line = path.empty() ? "" : path + ": ";
  if (const auto key = missing_key(error.description)) return line + "key " + *key + " is missing";
  const auto schema = schema_at(kind, steps);
  const std::string wanted =
      schema ? expected_words(error.description, *schema) : error.description;
  return line + on_one_line("found " + quoted(*value) + "; " + wanted, kLongestProblem);
}

std::optional<std::string> version_problem(const Json& json, std::string_view kind) {
  try {
    require_schema(json, kind);
  } catch (const FormatError&) {
    return "schema: found " + quoted(Document(json.at("schema"))) + "; this build reads '" +
           schema_prefix(kind) + "x'";
  }
  return std::nullopt;
}

std::string all_kinds() {
  std::string text;
  for (const std::string_view kind : schema_kinds()) {
    text.append(text.empty() ? "" : ", ").append(kind);
  }
  return text;
}

}  // namespace

std::optional<std::string_view> schema_kind(const Json& json) {
  const auto found = json.find("schema");
  if (found == json.end() || !found->is_string()) return std::nullopt;
  const std::string_view schema = found->get_ref<const std::string&>();
  constexpr std::string_view kPrefix = "rematch.";
  const std::size_t slash = schema.find('/');
  if (!schema.starts_with(kPrefix) || slash == std::string_view::npos) return std::nullopt;
  return schema.substr(kPrefix.size(), slash - kPrefix.size());
}

std::optional<std::string> validate(const Json& json) {
  if (!json.is_object()) return "expected a JSON object";
  const std::optional<std::string_view> kind = schema_kind(json);
  if (!kind) return "schema: missing or not of the form rematch.KIND/1.0; kinds are " + all_kinds();
  if (!schema_text(*kind)) {
    return "schema: no kind '" + on_one_line(*kind, kLongestQuote) + "'; kinds are " + all_kinds();
  }
  if (auto problem = version_problem(json, *kind)) return problem;
  const Document schema_document = parsed_schema(*kind);
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(Adapter(schema_document), schema, fetch_schema,
                                          free_schema);
  const Document document(json);
  valijson::ValidationResults results;
  if (valijson::Validator().validate(schema, Adapter(document), &results)) return std::nullopt;
  Error first;
  results.popError(first);
  return one_line(*kind, first, document);
}

std::vector<std::string_view> schema_kinds() {
  std::vector<std::string_view> kinds;
  for (const auto& [kind, text] : embedded_schemas()) kinds.push_back(kind);
  return kinds;
}

std::optional<std::string_view> schema_text(std::string_view kind) {
  for (const auto& [name, text] : embedded_schemas()) {
    if (name == kind) return text;
  }
  return std::nullopt;
}

}  // namespace rematch
