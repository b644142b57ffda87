// Validates JSON against the schema of its kind, which is part of the binary. A schema cannot check
// hashes and repeated fields, so the readers check them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/json_fwd.h"

namespace rematch {

// Returns the first problem, in one line with its path: "points[0].time.step_ratio.ratio: found
// "x"; ...". Absent if `json` matches the schema that its key "schema" names.
std::optional<std::string> validate(const Json& json);

// Returns the kind of a record: "report" if its schema is "rematch.report/1.5". Absent for JSON
// without such a schema.
std::optional<std::string_view> schema_kind(const Json& json);

// Returns the kinds that have a schema: "plan", "point", "report", ...
std::vector<std::string_view> schema_kinds();

// Returns the schema's text; absent for an unknown kind.
std::optional<std::string_view> schema_text(std::string_view kind);

}  // namespace rematch
