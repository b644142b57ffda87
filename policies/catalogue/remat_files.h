// The policy files of policies/catalogue/maxtext as text, embedded by rematch_embed: an installed
// binary needs no data folder.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

// (file name without .json, text), sorted by name.
const std::vector<std::pair<std::string_view, std::string_view>>& remat_files();

}  // namespace rematch
