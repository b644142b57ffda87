// The policies that scripts/verify_gpu runs are typed in scripts/gpu/stages.py, where nothing but a
// machine with a GPU would see that one does not parse.
#include <fstream>
#include <regex>
#include <sstream>

#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

std::string stages() {
  std::ifstream file(testing::in_tree("scripts/gpu/stages.py"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string refusal(const std::string& policies) {
  const auto parsed = parse_policies(policies);
  const auto* rejected = std::get_if<Rejected>(&parsed);
  return rejected == nullptr ? "" : rejected->message;
}

TEST_CASE("every list of policies in verify_gpu's stages parses") {
  const std::string text = stages();
  static const std::regex kList("--policy ([a-z_0-9,()]+)");
  int lists = 0;
  for (std::sregex_iterator list(text.begin(), text.end(), kList), none; list != none; ++list) {
    const std::string policies = (*list)[1];
    CAPTURE(policies);
    CHECK(refusal(policies) == "");
    ++lists;
  }
  CHECK(lists >= 3);
}

}  // namespace
}  // namespace rematch
