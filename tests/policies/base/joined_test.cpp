#include "policies/base/text.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("parts stand in order with the separator between them and nowhere else") {
  CHECK(joined(std::vector<std::string>{}) == "");
  CHECK(joined(std::vector<std::string>{"mm"}) == "mm");
  CHECK(joined(std::vector<std::string_view>{"mm", "bmm"}) == "mm, bmm");
  CHECK(joined(std::set<std::string>{"b", "a"}, " && ") == "a && b");
}

// A cell of a CSV line may be empty, the first one too.
TEST_CASE("an empty part keeps its separators") {
  CHECK(joined(std::vector<std::string>{"", "a", "", "b"}, ",") == ",a,,b");
}

}  // namespace
}  // namespace rematch
