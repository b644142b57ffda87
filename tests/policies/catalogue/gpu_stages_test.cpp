// The policies that scripts/verify_gpu runs are typed in scripts/gpu/stages.py, where nothing but a
// machine with a GPU would see that one does not parse.
#include <fstream>
#include <map>
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

// {"nth_last": "nth_last(2)", ...}
std::map<std::string, std::string> examples() {
  const std::string text = stages();
  const std::size_t first = text.find("EXAMPLES = {");
  const std::size_t end = text.find("\n}", first);
  if (first == std::string::npos || end == std::string::npos) return {};
  const std::string table = text.substr(first, end - first);
  static const std::regex kEntry("\"([^\"]+)\": \"([^\"]+)\"");
  std::map<std::string, std::string> found;
  for (std::sregex_iterator entry(table.begin(), table.end(), kEntry), none; entry != none;
       ++entry) {
    found[(*entry)[1]] = (*entry)[2];
  }
  return found;
}

std::string refusal(const std::string& policies) {
  const auto parsed = parse_policies(policies);
  const auto* rejected = std::get_if<Rejected>(&parsed);
  return rejected == nullptr ? "" : rejected->message;
}

TEST_CASE("every policy of the catalogue, as verify_gpu types it, parses") {
  const std::map<std::string, std::string> typed = examples();
  CHECK(typed.size() > 10);
  std::string all;
  for (const CatalogueEntry& entry : catalogue()) {
    const auto found = typed.find(std::string(entry.name));
    const std::string policy = found == typed.end() ? std::string(entry.name) : found->second;
    CAPTURE(policy);
    CHECK(refusal(policy) == "");
    all += (all.empty() ? "" : ",") + policy;
  }
  CHECK(refusal(all) == "");
}

TEST_CASE("every example of verify_gpu is one of the policy that it stands for") {
  for (const auto& [name, policy] : examples()) {
    CAPTURE(name, policy);
    bool listed = false;
    for (const CatalogueEntry& entry : catalogue()) listed = listed || entry.name == name;
    CHECK(listed);
    CHECK(policy.starts_with(name + "("));
    CHECK(refusal(policy) == "");
  }
}

TEST_CASE("every list of policies in verify_gpu's stages parses") {
  const std::string text = stages();
  static const std::regex kList("(?:--policy |BENCH_POLICIES = \")([a-z_0-9,()]+)");
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
