// The style sheets of pictures and pages, and the script of pages. The build embeds them from the
// .css and .js files.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Pairs of a file's name without its extension and the file's text.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_styles();
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_scripts();

}  // namespace rematch
