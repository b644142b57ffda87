// Locates files of the source tree. Only in_tree.cpp contains the tree's path, so that a compiler
// cache can share all other test objects between checkouts.
#pragma once

#include <string>

namespace rematch::testing {

// Returns the absolute path of `path`, which is relative to the root of the source tree.
std::string in_tree(const std::string& path);

}  // namespace rematch::testing
