// Locates the files of the source tree for the tests. The path is compiled into in_tree.cpp alone,
// so that a compiler cache can reuse every other test source in any checkout.
#pragma once

#include <string>

namespace rematch::testing {

// Returns the absolute path of `path`, which is relative to the root of the source tree.
std::string in_tree(const std::string& path);

}  // namespace rematch::testing
