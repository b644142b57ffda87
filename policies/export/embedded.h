// The Python file that carries a plan, with holes, embedded by rematch_embed.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// (name, text) of each file.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_exports();

}  // namespace rematch
