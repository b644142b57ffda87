#include "policies/base/text.h"

#include <catch2/catch.hpp>

namespace rematch {
namespace {

const std::vector<std::string_view> kPolicies = {"none",     "full",    "nth_first", "nth_last",
                                                 "skip_nth", "save_mm", "attn_only", "segments"};

TEST_CASE("edit distance counts slips of the hand") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("fulL", "full") == 1);
  CHECK(edit_distance("flul", "full") == 1);  // two neighbours swapped
  CHECK(edit_distance("ab", "ba") == edit_distance("ba", "ab"));
}

TEST_CASE("the nearest known name is found, or none") {
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

TEST_CASE("a message ends in the nearest name, else in all of them") {
  CHECK(did_you_mean("nonee", kPolicies) == "; did you mean 'none'?");
  CHECK(did_you_mean("zzz", std::vector<std::string>{"none", "full"}) == "; known: none, full");
  CHECK(did_you_mean("zzz", std::vector<std::string>{}).empty());
}

}  // namespace
}  // namespace rematch
