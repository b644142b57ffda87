#include "tests/support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policies/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch::testing {

namespace {

std::filesystem::path path_of(const std::string& name) { return in_tree("tests/golden/" + name); }

// Shows only the first difference, because files may be long.
void show_first_difference(const std::string& text, const std::string& approved) {
  std::istringstream found(text);
  std::istringstream wanted(approved);
  std::string found_line;
  std::string wanted_line;
  int line = 0;
  while (found_line == wanted_line && (found || wanted)) {
    ++line;
    if (!std::getline(found, found_line)) found_line = "(end)";
    if (!std::getline(wanted, wanted_line)) wanted_line = "(end)";
  }
  CAPTURE(line);
  CHECK(found_line == wanted_line);
}

}  // namespace

std::string read_golden(const std::string& name) {
  std::ifstream file(path_of(name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = path_of(name);
  const char* approve = std::getenv("REMATCH_APPROVE");
  if (approve != nullptr && std::string(approve) == "1") {
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path.string(), text);
  }
  const std::string approved = read_golden(name);
  INFO(path.string() << ": if the difference is meant, scripts/approve_golden.py approves it");
  if (text != approved) show_first_difference(text, approved);
  CHECK((text == approved));
}

void keep_page(const std::string& name, const std::string& page) {
  const char* folder = std::getenv("REMATCH_PAGES");
  if (folder != nullptr) write_file_atomically(std::filesystem::path(folder) / name, page);
}

}  // namespace rematch::testing
