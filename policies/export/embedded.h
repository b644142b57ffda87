// The templates of the Python files that run a plan, and the functions that both share.
// Placeholders stand for the plan's content. The CMake function rematch_embed embeds the files in
// the program.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Returns a pair of name and text for each embedded file.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_exports();

}  // namespace rematch
