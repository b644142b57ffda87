#include "harness/sweep/sweep_file.h"

#include <set>

#include "policies/base/json.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// A sweep of two models with 6 and 4 combinations of sizes. One combination is skipped for each
// model, so 8 comparisons remain. Each has 5 policies.
Json sample_sweep() {
  return Json::parse(R"({"schema": "rematch.sweep/1.0", "run": ["--steps", "2", "--rounds", "1"],
    "groups": [
      {"model": "llama_small", "policies": ["none", "full", "attn_only", "save_mm", "save_compute"],
       "fixed": {"layers": 2, "heads": 4, "batch": 1},
       "axes": {"dim": [32, 64], "tokens": [16, 32, 64]}, "skip": [{"dim": 64, "tokens": 64}]},
      {"model": "wan_small", "policies": ["none", "full", "attn_only", "save_mm", "save_compute"],
       "fixed": {"layers": 2, "heads": 2, "ffn": 64, "frames": 2, "height": 2},
       "axes": {"dim": [32, 64], "width": [4, 8]}, "skip": [{"dim": 64, "width": 8}]}]})");
}

std::string sweep_problem(const Json& json) {
  try {
    sweep_from_json(json);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE(
    "a sweep contains every combination of its axes in the file's order, except skipped "
    "combinations") {
  const SweepFile sweep = sweep_from_json(sample_sweep());
  REQUIRE(sweep.comparisons.size() == 8);
  CHECK(sweep.num_duplicates == 0);
  std::set<std::string> ids;
  int num_points = 0;
  for (const PlannedComparison& comparison : sweep.comparisons) {
    ids.insert(comparison.id);
    num_points += comparison.num_points;
  }
  CHECK(ids.size() == 8);
  CHECK(num_points == 40);
  CHECK(sweep.comparisons[1].arguments ==
        std::vector<std::string>{"--model",    "llama_small",
                                 "--layers",   "2",
                                 "--heads",    "4",
                                 "--batch",    "1",
                                 "--dim",      "32",
                                 "--tokens",   "32",
                                 "--policy",   "none,full,attn_only,save_mm,save_compute",
                                 "--schedule", "usual",
                                 "--seed",     "0",
                                 "--steps",    "2",
                                 "--rounds",   "1"});
}

TEST_CASE(
    "two groups with the same model dimensions share one comparison, without duplicate points") {
  Json json = sample_sweep();
  json["groups"][1] = json["groups"][0];
  // "vocab" has the preset's own value, so the shape is the same
  json["groups"][1]["fixed"]["vocab"] =
      std::get<ModelSpec>(make_spec("llama_small", {})).at("vocab");
  json["groups"][1]["policies"] = {"full", "nth_last(2)"};
  const SweepFile sweep = sweep_from_json(json);
  REQUIRE(sweep.comparisons.size() == 5);
  CHECK(sweep.num_duplicates == 5);
  CHECK(sweep.comparisons[0].policies.back() == "nth_last(2)");
  CHECK(sweep.comparisons[0].num_points == 6);
  json["groups"][1]["schedule"] = "both";
  CHECK_THAT(sweep_problem(json), Catch::StartsWith("groups[1]: llama_small") &&
                                      Catch::Contains("is requested in groups[0] with another"));
}

TEST_CASE(
    "each seed gives a comparison, each schedule gives a point, and the reference is always "
    "measured") {
  Json json = sample_sweep();
  json["groups"].erase(1);
  json["groups"][0]["seeds"] = {0, 7};
  json["groups"][0]["schedule"] = "both";
  json["groups"][0]["policies"] = {"full"};
  json["groups"][0]["repetitions"] = 3;
  const SweepFile sweep = sweep_from_json(json);
  REQUIRE(sweep.comparisons.size() == 10);
  CHECK(sweep.comparisons[1].seed == 7);
  CHECK(sweep.comparisons[0].policies == std::vector<std::string>{"none", "full"});
  CHECK(sweep.comparisons[0].num_points == 3);  // not 4, because policy none has no schedule
  const std::vector<std::string>& words = sweep.comparisons[0].arguments;
  const auto flag = std::find(words.begin(), words.end(), "--repeat-reference");
  REQUIRE(flag != words.end());
  CHECK(*std::next(flag) == "3");
}

TEST_CASE("the error for a malformed sweep file is one line with the JSON path") {
  struct Edit {
    const char* pointer;
    Json value;
    const char* line;
  };
  const std::vector<Edit> edits = {
      {"/schema", "rematch.sweep/2.0", "file has schema"},
      {"/groups/0/model", "lama_small", "groups[0].model: unknown model 'lama_small'"},
      {"/groups/0/axes/tokenz", {1}, "groups[0].axes.tokenz: no axis 'tokenz'; did you mean"},
      {"/groups/0/axes/tokens/1", "many", "groups[0].axes.tokens[1]: found \"many\"; expected a"},
      {"/groups/0/axes/dtype", {16}, "groups[0].axes.dtype[0]: found 16; expected a string"},
      {"/groups/0/axes/layers", {3}, "groups[0].axes.layers: is also listed in \"fixed\""},
      {"/groups/0/axes/tokens", Json::array(), "groups[0].axes.tokens: is empty"},
      {"/groups/0/fixed/heads", 5, "groups[0]: llama_small, layers 2, heads 5, batch 1, dim 32"},
      {"/groups/1/policies/2", "atn_only", "groups[1].policies[2]: unknown policy 'atn_only'"},
      {"/groups/1/schedule", "sometimes", "groups[1].schedule: unknown schedule 'sometimes'"},
      {"/groups/0/skip/0/tokens", 65, "groups[0].skip[0]: skips nothing"},
      {"/groups/0/seeds", {-1}, "groups[0].seeds[0]: -1 is out of range"},
      {"/groups/0/polices", {"full"}, "groups[0]: unknown key \"polices\"; did you mean"},
      {"/run/0", "--model=x", "run[0]: '--model' is not allowed among the arguments"},
      {"/groups", Json::array(), "groups: contains no comparison"},
  };
  for (const Edit& edit : edits) {
    CAPTURE(edit.pointer);
    Json json = sample_sweep();
    json[Json::json_pointer(edit.pointer)] = edit.value;
    CHECK_THAT(sweep_problem(json), Catch::StartsWith(edit.line));
  }
}

TEST_CASE("a plan reads back unchanged, and an edited plan is rejected") {
  ComparisonPlan plan;
  plan.tool_version = "0.1.0";
  plan.device = "cpu";
  plan.comparisons = sweep_from_json(sample_sweep()).comparisons;
  plan.comparisons[0].predicted = {Bytes{10}, Bytes{20}, std::chrono::milliseconds(30)};
  const Json json = plan_to_json(plan);
  const ComparisonPlan again = comparison_plan_from_json(Json::parse(json.dump(2)));
  CHECK(again.id == comparison_plan_id(plan));
  CHECK(again.comparisons.size() == 8);
  CHECK(again.comparisons[0].predicted == plan.comparisons[0].predicted);
  CHECK(again.comparisons[7].arguments == plan.comparisons[7].arguments);
  CHECK(plan_to_json(again) == json);
  Json changed = json;
  changed["comparisons"][0]["seed"] = 1;
  CHECK_THROWS_AS(comparison_plan_from_json(changed), FormatError);
}

TEST_CASE("an axis of 1,000 values gives one comparison for each value") {
  Json json = sample_sweep();
  json["groups"].erase(1);
  json["groups"][0].erase("skip");
  json["groups"][0]["axes"]["tokens"] = Json::array();
  for (int index = 1; index <= 1000; ++index) json["groups"][0]["axes"]["tokens"].push_back(index);
  CHECK(sweep_from_json(json).comparisons.size() == 2000);
}

}  // namespace
}  // namespace rematch
