// The Python file for a plan, with placeholders. rematch_embed embeds it.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Returns (name, text) of each file.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_exports();

}  // namespace rematch
