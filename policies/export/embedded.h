// Templates of the Python files that run a plan, with the functions that all these files share. The
// exporter replaces placeholders in the templates by the plan's content. The CMake function
// rematch_embed embeds the templates in the program.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Returns the name and the text of each embedded file.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_exports();

}  // namespace rematch
