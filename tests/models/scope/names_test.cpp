#include "models/scope/names.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// Returns the text of the first capture group of every match.
std::vector<std::string> found_in(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

std::vector<std::string> all_names() {
  return {scope_names::kAll.begin(), scope_names::kAll.end()};
}

TEST_CASE("the table of scopes in the README lists the constants in order") {
  std::string readme = text_of(testing::in_tree("models/README.md"));
  const std::size_t begin = readme.find("\n## Scope names\n");
  REQUIRE(begin != std::string::npos);
  readme = readme.substr(begin, readme.find("\n## ", begin + 1) - begin);
  CHECK(found_in(readme, std::regex("\n\\| `([a-z_]+)` \\|")) == all_names());
}

TEST_CASE("the list of all scope names contains each constant once") {
  const std::string header = text_of(testing::in_tree("models/scope/names.h"));
  CHECK(found_in(header, std::regex("string_view k[A-Za-z]+ = \"([a-z_]+)\"")) == all_names());
  const std::vector<std::string> names = all_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

// Reads the sources, because a test that runs all models would miss scopes that need several ranks
// or rare options.
TEST_CASE("models name their scopes only by constants") {
  const std::regex opens_scope("\\bScope \\w+\\((\\S[^,)]*)");
  int scopes = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(testing::in_tree("models"))) {
    const std::string folder = entry.path().parent_path().filename();
    const std::string suffix = entry.path().extension();
    if (folder == "scope" || (suffix != ".h" && suffix != ".cpp")) continue;
    CAPTURE(entry.path());
    for (const std::string& name : found_in(text_of(entry.path()), opens_scope)) {
      CAPTURE(name);
      CHECK((name.starts_with("scope_names::k") || name == "scope_name"));
      ++scopes;
    }
  }
  CHECK(scopes > 40);
}

TEST_CASE("path() joins scope names by dots") {
  CHECK(scope_names::path({scope_names::kMoe, scope_names::kExperts}) == "moe.experts");
  CHECK(scope_names::path({scope_names::kFfn}) == "ffn");
}

}  // namespace
}  // namespace rematch
