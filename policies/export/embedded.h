// The template of the Python file that runs a plan. Placeholders stand for the plan's content. The
// CMake function rematch_embed embeds the file in the program.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Returns a pair of name and text for each embedded file.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_exports();

}  // namespace rematch
