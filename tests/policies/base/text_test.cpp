#include "policies/base/text.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("user input is printed on one line, whatever it contains") {
  CHECK(in_quotes("full") == "'full'");
  CHECK(in_quotes("") == "''");
  CHECK(in_quotes("a\nb\tc") == "'a\\nb\\tc'");
  CHECK(in_quotes(std::string_view("\0\x1b[31m", 6)) == "'\\x00\\x1b[31m'");
  CHECK(in_quotes("gr\xc3\xb6ss") == "'gr\xc3\xb6ss'");
  CHECK(in_quotes(std::string(120, 'x')) == "'" + std::string(120, 'x') + "'");
  CHECK(in_quotes(std::string(500, 'x')) == "'" + std::string(120, 'x') + "...'");
  CHECK(in_quotes(std::string(119, 'x') + "\xc3\xb6yy") ==
        "'" + std::string(119, 'x') + "\xc3\xb6...'");
  // The limit counts escaped text. Each of these bytes is escaped to four characters.
  CHECK(in_quotes(std::string(120, '\0')).size() < 130);
}

// With a limit of ten bytes, five remain at each end. A character of two bytes remains whole or is
// dropped.
TEST_CASE("file content is printed on one line, and a long message keeps its end") {
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
  const std::string fifteen = words.substr(0, 15 * 8);  // 15 words, together 120 bytes
  CHECK(in_quotes(words) == "'" + fifteen + "...'");
  // A list of layers may be long and contain no space.
  std::string names;
  while (names.size() < 200) names += "layers.7.wq,";
  CHECK(in_quotes(names) == "'" + names.substr(0, 120) + "...'");
  CHECK(in_quotes("abcd" + names) == "'abcd" + names.substr(0, 108) + "...'");
  CHECK(on_one_line("one,two,three,four,five,six,seven", 20) == "one,two,...,six,seven");
  CHECK(in_quotes("xyz" + words) == "'xyz" + words.substr(0, 14 * 8) + "...'");
}

TEST_CASE("joined() puts separators only between the parts") {
  CHECK(joined(std::vector<std::string>{}) == "");
  CHECK(joined(std::vector<std::string>{"mm"}) == "mm");
  CHECK(joined(std::vector<std::string_view>{"mm", "bmm"}) == "mm, bmm");
  CHECK(joined(std::set<std::string>{"b", "a"}, " && ") == "a && b");
}

// A cell of a CSV line may be empty, including the first one.
TEST_CASE("joining keeps the separators around an empty part") {
  CHECK(joined(std::vector<std::string>{"", "a", "", "b"}, ",") == ",a,,b");
}

TEST_CASE("every placeholder is replaced, but not inside inserted text") {
  CHECK(filled_in("{N} of {N}", "{N}", "2") == "2 of 2");
  CHECK(filled_in("{N}", "{N}", "{N}{N}") == "{N}{N}");
  CHECK(filled_in("none", "{N}", "2") == "none");
}

TEST_CASE("a number is parsed only if the text contains nothing else") {
  CHECK(parse_number<int>("42") == 42);
  CHECK(parse_number<int>("-1") == -1);
  CHECK(parse_number<double>("2.5e-1") == 0.25);
  CHECK_FALSE(parse_number<int>("").has_value());
  CHECK_FALSE(parse_number<int>("4x").has_value());
  CHECK_FALSE(parse_number<int>(" 4").has_value());
  CHECK_FALSE(parse_number<int>("4000000000").has_value());
}

const std::vector<std::string_view> kPolicies = {"none",     "full",    "nth_first", "nth_last",
                                                 "skip_nth", "save_mm", "attn_only", "segments"};

TEST_CASE("the edit distance counts typing mistakes") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("fulL", "full") == 1);
  CHECK(edit_distance("flul", "full") == 1);  // a swap of two letters is one edit
  CHECK(edit_distance("ab", "ba") == edit_distance("ba", "ab"));
}

TEST_CASE("the nearest known name is found if it is near enough") {
  CHECK(nearest_name("nth_frist", kPolicies) == "nth_first");
  CHECK(nearest_name("ful", kPolicies) == "full");
  CHECK(nearest_name("FULL", kPolicies) == "full");
  CHECK(nearest_name("attn", kPolicies) == "attn_only");
  CHECK(nearest_name("nth-last", kPolicies) == "nth_last");
  CHECK_FALSE(nearest_name("checkpoint_everything", kPolicies).has_value());
  CHECK_FALSE(nearest_name("x", kPolicies).has_value());
  CHECK_FALSE(nearest_name("", kPolicies).has_value());
  CHECK_FALSE(nearest_name("full", std::vector<std::string_view>{}).has_value());
}

TEST_CASE("a short word that differs in a letter does not count as a misspelling") {
  CHECK_FALSE(nearest_name("cp", {"tp", "sp"}));
  CHECK_FALSE(nearest_name("gpu", {"cpu", "meta"}));
  CHECK_FALSE(nearest_name("v100", {"h100", "l40s"}));
  CHECK(nearest_name("pt", {"tp", "sp"}) == "tp");
  CHECK(nearest_name("cude", {"cpu", "cuda"}) == "cuda");
  CHECK(nearest_name("safe", {"save", "offload"}) == "save");
  CHECK(nearest_name("flul", kPolicies) == "full");
}

TEST_CASE("a message suggests the nearest name, or else lists all names") {
  CHECK(did_you_mean("nonee", kPolicies) == "; did you mean 'none'?");
  CHECK(did_you_mean("zzz", std::vector<std::string>{"none", "full"}) == "; known: none, full");
  CHECK(did_you_mean("zzz", std::vector<std::string>{}).empty());
}

}  // namespace
}  // namespace rematch
