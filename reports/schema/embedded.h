// The schemas of this folder as text, made into a source file by embed.cmake when they change.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// (kind, text), sorted by kind.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_schemas();

}  // namespace rematch
