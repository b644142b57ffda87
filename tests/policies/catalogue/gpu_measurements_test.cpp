// Checks that the policies in reports/results/gpu/queue.json, which scripts/gpu_queue runs, can be
// parsed. Otherwise a malformed policy would be noticed only on a GPU.
#include <fstream>
#include <regex>
#include <sstream>

#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

std::string gpu_measurements() {
  std::ifstream file(testing::in_tree("reports/results/gpu/queue.json"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string refusal(const std::string& policies) {
  const auto parsed = parse_policies(policies);
  const auto* rejected = std::get_if<Rejected>(&parsed);
  return rejected == nullptr ? "" : rejected->message;
}

TEST_CASE("all lists of policies in queue.json can be parsed") {
  const std::string text = gpu_measurements();
  // The second group of this regular expression is the list of policies. It does not match a policy
  // file at the end of the list, because parsing would open the file.
  static const std::regex kList("--(policy|baselines) ([a-z_0-9,()]+?)(,scripts/[a-z_/.]+)?[ \"]");
  int lists = 0;
  for (std::sregex_iterator list(text.begin(), text.end(), kList), none; list != none; ++list) {
    const std::string policies = (*list)[2];
    CAPTURE(policies);
    CHECK(refusal(policies) == "");
    ++lists;
  }
  CHECK(lists >= 20);
}

}  // namespace
}  // namespace rematch
