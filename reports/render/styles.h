// The style sheets of pictures and pages. The build embeds them from the .css files.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// Pairs of (file name up to its dot, text).
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_styles();

}  // namespace rematch
