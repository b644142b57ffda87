#include "tests/support/in_tree.h"

namespace rematch::testing {

std::string in_tree(const std::string& path) {
  return std::string(REMATCH_SOURCE_DIR) + "/" + path;
}

}  // namespace rematch::testing
