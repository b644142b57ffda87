// A schema's demand at a place, in the readers' words: "expected a whole number". The library
// that validates says only which keyword was not met.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

using SchemaNode = nlohmann::json;

// A step from a value to one of its members or, by an index, elements.
using SchemaPath = std::vector<std::string>;

// The schema of a kind, parsed.
using FindSchema = std::function<SchemaNode(std::string_view kind)>;

// The demand of `kind`'s schema on the value at `path`, references followed; absent if none.
std::optional<SchemaNode> schema_at(std::string_view kind, const SchemaPath& path,
                                    const FindSchema& find);

// The library's words for what is wrong with a value that `node` describes, as a reader would say
// it; `description` itself where there is no such saying.
std::string expected_words(const std::string& description, const SchemaNode& node);

}  // namespace rematch
