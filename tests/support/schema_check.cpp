#include "tests/support/schema_check.h"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/support/in_tree.h"

namespace rematch::testing {
namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

std::string joined(const valijson::ValidationResults& results) {
  std::string text;
  for (const valijson::ValidationResults::Error& error : results) {
    std::string place;
    for (const std::string& step : error.context) place += step;
    if (!text.empty()) text += "; ";
    text.append(place).append(": ").append(error.description);
  }
  return text;
}

}  // namespace

std::optional<std::string> schema_error(const nlohmann::json& json, const std::string& name) {
  const std::string path = in_tree("reports/schema/") + name + ".schema.json";
  const nlohmann::json document = read_json_file(path);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(Adapter(document), schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, Adapter(json), &results)) return std::nullopt;
  return joined(results);
}

std::optional<std::string> schema_error(const Json& json, const std::string& name) {
  return schema_error(nlohmann::json(json), name);
}

}  // namespace rematch::testing
