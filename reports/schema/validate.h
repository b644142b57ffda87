// Holds JSON to the committed schema of its kind. The schemas are part of the binary, so an
// installed one validates without the sources. Does not check what schemas cannot say: hashes,
// and what appears twice (the readers do).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/json_fwd.h"

namespace rematch {

// The first thing wrong, in one line with its path: "points[0].time.step_ratio.ratio: found "x";
// ...". Nothing if `json` fits the schema that its "schema" key names.
std::optional<std::string> validate(const Json& json);

// Kinds that have a schema: "plan", "point", "report", ...
std::vector<std::string_view> schema_kinds();

// The schema's text, or nothing for an unknown kind.
std::optional<std::string_view> schema_text(std::string_view kind);

}  // namespace rematch
