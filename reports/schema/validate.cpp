#include "reports/schema/validate.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/schema/embedded.h"
#include "reports/schema/expected.h"

namespace rematch {
namespace {

using Document = nlohmann::json;  // what valijson's adapter reads
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

// A schema may refer to another by its file name; both are built in.
const Document* fetch_schema(const std::string& file) {
  const std::string_view name = file;
  const std::size_t slash = name.rfind('/') + 1;  // npos + 1 is 0
  if (!name.ends_with(kFileEnding)) return nullptr;
  return std::make_unique<Document>(
             parsed_schema(name.substr(slash, name.size() - slash - kFileEnding.size())))
      .release();
}

void free_schema(const Document* document) { std::unique_ptr<const Document> owner(document); }

// "rematch.report/1.0": the kind, or nothing if that is not what it looks like.
std::optional<std::string_view> kind_of(const Json& json) {
  const auto found = json.find("schema");
  if (found == json.end() || !found->is_string()) return std::nullopt;
  const std::string_view schema = found->get_ref<const std::string&>();
  constexpr std::string_view kPrefix = "rematch.";
  const std::size_t slash = schema.find('/');
  if (!schema.starts_with(kPrefix) || slash == std::string_view::npos) return std::nullopt;
  return schema.substr(kPrefix.size(), slash - kPrefix.size());
}

std::string quoted(const Document& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  return on_one_line(value.dump(-1, ' ', /*ensure_ascii=*/true, Document::error_handler_t::replace),
                     kLongestQuote);
}

// Turns valijson's <root>[points][0][key] into points[0].key; `value` follows the path.
std::string readable_path(const Error& error, const Document*& value) {
  std::string path;
  for (std::size_t depth = 1; depth < error.context.size(); ++depth) {
    const std::string& step = error.context[depth];
    const std::string name = step.substr(1, step.size() - 2);
    if (value->is_array()) {
      path += step;
      value = &value->at(std::stoul(name));
    } else {
      path.append(path.empty() ? "" : ".").append(name);
      value = &value->at(name);
    }
  }
  return on_one_line(path, kLongestPath);
}

SchemaPath steps_of(const Error& error) {
  SchemaPath path;
  for (std::size_t depth = 1; depth < error.context.size(); ++depth) {
    const std::string& step = error.context[depth];
    path.push_back(step.substr(1, step.size() - 2));
  }
  return path;
}

// The library's "Missing required property 'key'." names what is not there.
std::optional<std::string> missing_key(const std::string& description) {
  constexpr std::string_view kStart = "Missing required property ";
  if (!description.starts_with(kStart) || !description.ends_with('.')) return std::nullopt;
  return description.substr(kStart.size(), description.size() - kStart.size() - 1);
}

std::string one_line(std::string_view kind, const Error& error, const Document& document) {
  const Document* value = &document;
  const std::string path = readable_path(error, value);
  std::string line = path.empty() ? "" : path + ": ";
  if (const auto key = missing_key(error.description)) return line + "key " + *key + " is missing";
  const auto schema = schema_at(kind, steps_of(error), parsed_schema);
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
    text.append(text.empty() ? "rematch." : ", rematch.").append(kind);
  }
  return text;
}

}  // namespace

std::optional<std::string> validate(const Json& json) {
  if (!json.is_object()) return "found no JSON object; every format of this project is one";
  const std::optional<std::string_view> kind = kind_of(json);
  if (!kind) return "schema: missing or not of the form rematch.KIND/1.0; known are " + all_kinds();
  if (!schema_text(*kind)) {
    return "schema: no kind 'rematch." + on_one_line(*kind, kLongestQuote) + "'; known are " +
           all_kinds();
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
