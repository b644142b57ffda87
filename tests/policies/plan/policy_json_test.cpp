#include "policies/plan/policy_json.h"
#include "policies/base/rejected.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/support/in_tree.h"
#include "tests/support/schema_check.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

using Catch::Contains;

Policy read(const std::string& text) { return policy_from_json(parse_json(text, "policy")); }

// Returns the text of a policy file: schema, name, and then `rest`.
std::string file_with(const std::string& rest) {
  return R"({"schema": "rematch.policy/1.0", "name": "mine")" + rest + "}";
}

TEST_CASE("a policy file needs only a name; the default is full checkpointing") {
  Policy full;
  full.name = "mine";
  CHECK(read(file_with("")) == full);
  CHECK(testing::schema_error(parse_json(file_with(""), "policy"), "policy") == std::nullopt);
}

TEST_CASE("a hand-written policy file is read correctly") {
  const Policy policy = read(file_with(R"(, "blocks": {"nth_last": 2}, "regions": "block",
      "save": ["attention_forward", "*.ffn::matmul#1"], "early_stop": false)"));
  CHECK(policy.blocks.kind == BlockChoice::Kind::kNthLast);
  CHECK(policy.blocks.n == 2);
  CHECK(policy.regions.kind == RegionChoice::Kind::kBlock);
  CHECK(policy.save ==
        std::vector<Selector>{{"", "attention_forward", {}}, {"*.ffn", "matmul", 1}});
  CHECK_FALSE(policy.early_stop);
}

TEST_CASE("the error for a malformed policy file gives the path of the mistake and what to write") {
  struct Row {
    std::string rest;
    std::string message;
  };
  const Row rows[] = {
      {R"(, "safe": [])", "unknown key \"safe\"; did you mean 'save'?"},
      {R"(, "early_stpo": true)", "did you mean 'early_stop'?"},
      {R"(, "save": ["matmal"])",
       "save[0]: selector 'matmal': 'matmal' is not an op class; did you mean 'matmul'?"},
      {R"(, "save": "aten::mm")", "save: found \"aten::mm\"; expected a list"},
      {R"(, "save": [1])", "save[0]: found 1; expected a string"},
      {R"(, "blocks": "every")", "blocks: unknown choice \"every\"; known: none, all"},
      {R"(, "blocks": {"nth_lst": 2})", "did you mean 'nth_last'?"},
      {R"(, "blocks": {"nth_last": 0})", "blocks.nth_last: 0 is out of range; allowed: 1 to"},
      {R"(, "blocks": {"nth_last": 2.5})", "blocks.nth_last: found 2.5; expected a whole number"},
      {R"(, "blocks": "nth_last")", "\"nth_last\" needs an argument: write {\"nth_last\": 2}"},
      {R"(, "blocks": {"all": 1})", "\"all\" takes no argument: write \"all\""},
      {R"(, "blocks": {"only": [-1]})", "blocks.only[0]: -1 is out of range"},
      {R"(, "blocks": {"first": 1, "last": 1})", "expected a word or an object with one key"},
      {R"(, "blocks": 3)", "expected a word or an object with one key"},
      {R"(, "regions": {"scopes": []})", "is empty; list scopes"},
      {R"(, "alternate": {"keep": "odd"})", "alternate: key \"selectors\" is missing"},
      {R"(, "alternate": {"selectors": []})", "is empty; list the ops to alternate"},
      {R"(, "alternate": {"selectors": ["matmul"], "keep": "first"})",
       "allowed: \"odd\" and \"even\""},
      {R"(, "recompute": ["matmul"])", "\"recompute\" requires \"inverse\": true"},
      {R"(, "inverse": true, "save": ["matmul"])", "remove \"save\""},
      {R"(, "recompute_regions": ["matmul"])",
       "excludes ops from \"save_regions\", which is empty"},
      {R"(, "save_last_add": true)", "adds to \"save_regions\", which is empty"},
      {R"(, "save_regions": ["*.ffn::any"], "save": ["matmul"])", "remove \"save\""},
      {R"(, "name2": 1)", "did you mean 'name'?"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.rest);
    CHECK_THROWS_AS(read(file_with(row.rest)), FormatError);
    CHECK_THROWS_WITH(read(file_with(row.rest)), Contains(row.message));
  }
  CHECK_THROWS_WITH(read(R"({"schema": "rematch.policy/1.0"})"), "key \"name\" is missing");
  CHECK_THROWS_WITH(read(R"({"schema": "rematch.policy/1.0", "name": ""})"), Contains("is empty"));
  CHECK_THROWS_WITH(read(R"({"schema": "rematch.policy/1.0", "name": "two\nlines"})"),
                    Contains("name: 'two\\nlines' contains control characters"));
  CHECK_THROWS_WITH(read(R"({"schema": "rematch.plan/1.0"})"), Contains("rematch.policy/1.x"));
}

TEST_CASE("a policy file is read, or rejected with one line that contains its path") {
  const testing::ScratchFolder folder;
  const std::string path = folder.file("mine.json");
  std::ofstream(path) << file_with(R"(, "regions": "root")");
  const auto policy = read_policy_file(path);
  REQUIRE(std::holds_alternative<Policy>(policy));
  CHECK(std::get<Policy>(policy).regions.kind == RegionChoice::Kind::kRoot);

  const auto message_of = [&](const std::string& file) {
    return std::get<Rejected>(read_policy_file(file)).message;
  };
  std::ofstream(path) << file_with(R"(, "regions": "roots")");
  CHECK(message_of(path) == path + ": regions: unknown choice \"roots\"; did you mean 'root'?");
  std::ofstream(path) << "{";
  CHECK_THAT(message_of(path), Catch::StartsWith(path + ": malformed JSON at line 1"));
  CHECK_THAT(message_of(folder.file("none.json")), Contains("No such file or directory"));
}

TEST_CASE("the policy schema rejects a file that the reader rejects") {
  const Json bad = read_json_file(testing::in_tree("tests/policies/plan/bad_policy.json"));
  CHECK(testing::schema_error(bad, "policy").has_value());
  CHECK_THROWS_WITH(policy_from_json(bad), Contains("blocks.nth_last"));
  const auto schema_takes = [](const std::string& name) {
    const Json named = {{"schema", "rematch.policy/1.0"}, {"name", name}};
    return !testing::schema_error(named, "policy").has_value();
  };
  CHECK_FALSE(schema_takes(""));
  CHECK_FALSE(schema_takes("two\nlines"));
  CHECK(schema_takes("p\xc3\xa9ter's (1)"));
}

}  // namespace
}  // namespace rematch
