#include "policies/trace/in_quotes.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("what a user typed stays on one line, whatever it holds") {
  CHECK(in_quotes("full") == "'full'");
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("a\nb\tc") == "'a\\nb\\tc'");
  CHECK(in_quotes(std::string_view("\0\x1b[31m", 6)) == "'\\x00\\x1b[31m'");
  CHECK(in_quotes("gr\xc3\xb6ss") == "'gr\xc3\xb6ss'");
  CHECK(in_quotes(std::string(500, 'x')) == "'" + std::string(120, 'x') + "...'");
}

}  // namespace
}  // namespace rematch
