// Checks a file's JSON against its committed JSON Schema, for the tests of every format.
#pragma once

#include <optional>
#include <string>

#include "policies/base/json_fwd.h"

namespace rematch::testing {

// Validates `json` against reports/schema/<name>.schema.json. Returns the errors in one line, or
// nullopt if it is valid. Throws std::runtime_error if the schema does not exist or cannot be
// parsed.
std::optional<std::string> schema_error(const nlohmann::json& json, const std::string& name);
std::optional<std::string> schema_error(const Json& json, const std::string& name);

}  // namespace rematch::testing
