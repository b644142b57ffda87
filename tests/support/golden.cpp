#include "tests/support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policies/trace/file.h"
#include "tests/support/catch.h"

namespace rematch::testing {

void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(REMATCH_SOURCE_DIR) / "tests" / "golden" / name;
  const char* approve = std::getenv("REMATCH_APPROVE");
  if (approve != nullptr && std::string(approve) == "1") {
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path.string(), text);
  }
  std::ifstream file(path);
  std::stringstream wanted;
  wanted << file.rdbuf();
  CAPTURE(path.string());
  CHECK(text == wanted.str());
}

}  // namespace rematch::testing
