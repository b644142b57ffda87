// The text of this folder's schemas, embedded by rematch_embed.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Pairs of (kind, text of its schema), sorted by kind.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_schemas();

}  // namespace rematch
