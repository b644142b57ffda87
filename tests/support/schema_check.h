// Holds a file's JSON to its committed JSON Schema, for the tests of every format.
#pragma once

#include <optional>
#include <string>

#include "policies/base/json_fwd.h"

namespace rematch::testing {

// What reports/schema/<name>.schema.json finds wrong with `json`, in one line; nothing if it
// fits. Throws std::runtime_error if there is no such schema or it cannot be read as one.
std::optional<std::string> schema_error(const nlohmann::json& json, const std::string& name);
std::optional<std::string> schema_error(const Json& json, const std::string& name);

}  // namespace rematch::testing
