#include "policies/base/text.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("what a user typed stays on one line, whatever it holds") {
  CHECK(in_quotes("full") == "'full'");
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("a\nb\tc") == "'a\\nb\\tc'");
  CHECK(in_quotes(std::string_view("\0\x1b[31m", 6)) == "'\\x00\\x1b[31m'");
  CHECK(in_quotes("gr\xc3\xb6ss") == "'gr\xc3\xb6ss'");
  CHECK(in_quotes(std::string(120, 'x')) == "'" + std::string(120, 'x') + "'");
  CHECK(in_quotes(std::string(500, 'x')) == "'" + std::string(120, 'x') + "...'");
  CHECK(in_quotes(std::string(119, 'x') + "\xc3\xb6yy") ==
        "'" + std::string(119, 'x') + "\xc3\xb6...'");
  // Cut as shown: each of these bytes is shown as four.
  CHECK(in_quotes(std::string(120, '\0')).size() < 130);
}

// At ten bytes, five stay at either end; both bytes of a character stay, or none.
TEST_CASE("what a file holds stays on one line, and the end of a long message is kept") {
  CHECK(on_one_line("a\nb", 10) == "a\\nb");
  CHECK(on_one_line("0123456789", 10) == "0123456789");
  CHECK(on_one_line("0123456789a", 10) == "01234...6789a");
  CHECK(on_one_line("0123\xc3\xb6xxx\xc3\xb6wxyz", 10) == "0123...wxyz");
}

TEST_CASE("a long text is cut between words") {
  CHECK(on_one_line("one two three four five six seven", 20) == "one two ... six seven");
  CHECK(on_one_line("one two three four five six seven", 18) == "one two ... six seven");
  std::string words;
  while (words.size() < 200) words += "abcdefg ";
  const std::string fifteen = words.substr(0, 15 * 8);  // 120 bytes
  CHECK(in_quotes(words) == "'" + fifteen + "...'");
  // Names without spaces, as in lists of layers or arguments.
  std::string names;
  while (names.size() < 200) names += "layers.7.wq,";
  CHECK(in_quotes(names) == "'" + names.substr(0, 120) + "...'");
  CHECK(in_quotes("abcd" + names) == "'abcd" + names.substr(0, 108) + "...'");
  CHECK(on_one_line("one,two,three,four,five,six,seven", 20) == "one,two,...,six,seven");
  CHECK(in_quotes("xyz" + words) == "'xyz" + words.substr(0, 14 * 8) + "...'");
}

}  // namespace
}  // namespace rematch
