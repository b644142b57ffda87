#include "policies/catalogue/describe.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"

#include <fstream>
#include <iterator>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/policy_json.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/in_tree.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

Plan plan_of(std::string_view policy, const Trace& trace) {
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(plan);
}

std::string layers(std::string_view policy, const Trace& trace) {
  return describe_layers(plan_of(policy, trace), trace);
}

TEST_CASE("the first line of a description gives the indices of checkpointed and kept layers") {
  const Trace trace = testing::toy_llama({.layers = 8});
  CHECK(layers("nth_first(2)", trace) ==
        "nth_first(2), 8 layers: checkpoints 0 2 4 6, keeps 1 3 5 7");
  CHECK(layers("none", trace) == "none, 8 layers: checkpoints none, keeps 0 1 2 3 4 5 6 7");
  CHECK(layers("full", trace) == "full, 8 layers: checkpoints 0 1 2 3 4 5 6 7, keeps none");
  CHECK(layers("segments(3)", trace) ==
        "segments(3), 8 layers: checkpoints 0 1 2 | 3 4 5 | 6 7, keeps none");
  CHECK(layers("root", trace) == "root, 8 layers: checkpoints 0 1 2 3 4 5 6 7, keeps none");
  CHECK(layers("full", testing::toy_llama({.layers = 1})) ==
        "full, 1 layer: checkpoints 0, keeps none");
}

TEST_CASE("the policy in the README chooses the layers that the README lists") {
  std::ifstream file(testing::in_tree("README.md"));
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string fence = "```json\n";
  const std::size_t begin =
      readme.find(fence, readme.find("## A policy of your own")) + fence.size();
  const std::string text = readme.substr(begin, readme.find("```", begin) - begin);
  const Policy policy = policy_from_json(parse_json(text, "README.md"));
  const Trace trace = testing::toy_llama({.layers = 4});
  CHECK(describe_layers(std::get<Plan>(resolve(policy, trace)), trace) ==
        "mine, 4 layers: checkpoints 0 2, keeps 1 3");
}

TEST_CASE("a layer with two regions occurs only once in a description") {
  const Trace trace = testing::toy_llama({.layers = 4});
  Policy parts = std::get<Policy>(parse_policy("nth_last(2)"));
  parts.regions = {RegionChoice::Kind::kScopes, 0, {"attention", "ffn"}};
  CHECK(describe_layers(std::get<Plan>(resolve(parts, trace)), trace) ==
        "nth_last(2), 4 layers: checkpoints 1 3, keeps 0 2");
}

TEST_CASE("the description names the block list of each layer if there are several lists") {
  testing::TraceBuilder build("two_lists");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (const char* list : {"encoder", "decoder"}) {
    for (int layer = 0; layer < 2; ++layer) {
      const auto scope = build.scope(list, layer);
      x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    }
  }
  const Trace trace = build.finish();
  CHECK(layers("nth_first(2)", trace) ==
        "nth_first(2), encoder: 2 layers: checkpoints 0, keeps 1; decoder: 2 layers: checkpoints "
        "0, keeps 1");
}

TEST_CASE("the JSON of a plan has its layers, ops and totals", "[golden]") {
  const Trace trace = testing::toy_llama({.layers = 4});
  testing::check_golden("describe/save_mm.json",
                        describe_json(plan_of("save_mm", trace), trace).dump(2) + "\n");
  const Json json = describe_json(plan_of("save_mm", trace), trace);
  CHECK(json["layers"][0]["num_layers"] == 4);
  CHECK(json["types"][0]["regions"].size() == 4);
  CHECK(json["types"][0]["ops"].size() == plan_of("full", trace).types[0].ops.size());
  // no op reads w2's result, which has 8 x 16 floats
  CHECK(json["types"][0]["dead_bytes"] == 8 * 16 * 4);
  CHECK(json["held_bytes"]["total"] == json["held_bytes"]["kept"].get<int>() +
                                           json["held_bytes"]["inputs"].get<int>() +
                                           json["held_bytes"]["outside_regions"].get<int>());
}

TEST_CASE("describe_json() rejects a plan of another model") {
  const Plan plan = plan_of("full", testing::toy_llama({.layers = 4}));
  CHECK_THROWS_AS(describe_json(plan, testing::toy_llama({.layers = 3})), std::invalid_argument);
}

TEST_CASE("only torchtitan's policies have a note about copies to the host") {
  const Trace trace = testing::toy_llama({.layers = 2});
  constexpr const char* kNote = "torchtitan also keeps copies from a GPU to the host";
  const auto note_of = [](const char* policy) {
    return std::get<Policy>(parse_policy(policy)).note;
  };
  for (const char* policy :
       {"sac_titan", "sac_titan_even", "sac_titan_2025(llama3)", "titan:selective",
        "titan:selective(force_recompute_mm_shapes_by_fqns=[ffn])"}) {
    CAPTURE(policy);
    const Plan plan = plan_of(policy, trace);
    const std::string note = note_of(policy);
    CHECK_THAT(note, Catch::StartsWith(kNote));
    CHECK(describe_json(plan, trace, note).at("note").get<std::string>() == note);
  }
  for (const char* policy : {"none", "save_mm", "sac_titan_2024", "sac_grouped", "titan:full"}) {
    CAPTURE(policy);
    const Plan plan = plan_of(policy, trace);
    CHECK(note_of(policy).empty());
    CHECK_FALSE(describe_json(plan, trace).contains("note"));
  }
}

}  // namespace
}  // namespace rematch
