#include "policies/catalogue/place_regions.h"
#include "policies/base/rejected.h"

#include "tests/support/catch.h"

#include "policies/catalogue/catalogue.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::toy_llama;

std::vector<PlacedRegion> placed(const Policy& policy, const Trace& trace) {
  const auto result = place_regions(policy, trace);
  if (const auto* rejected = std::get_if<Rejected>(&result)) FAIL(rejected->message);
  return std::get<std::vector<PlacedRegion>>(result);
}

Policy policy(std::string_view text) { return std::get<Policy>(parse_policy(text)); }

std::vector<int> layers(std::string_view text, int num_layers) {
  std::vector<int> found;
  for (const PlacedRegion& region : placed(policy(text), toy_llama({.layers = num_layers}))) {
    found.insert(found.end(), region.planned.layers.begin(), region.planned.layers.end());
  }
  return found;
}

std::string message(std::string_view text, int num_layers) {
  const auto result = place_regions(policy(text), toy_llama({.layers = num_layers}));
  REQUIRE(std::holds_alternative<Rejected>(result));
  return std::get<Rejected>(result).message;
}

TEST_CASE("a policy chooses its layers by index") {
  using Layers = std::vector<int>;
  CHECK(layers("none", 4).empty());
  CHECK(layers("full", 4) == Layers{0, 1, 2, 3});
  CHECK(layers("nth_last(2)", 5) == Layers{1, 3});
  CHECK(layers("nth_last(3)", 8) == Layers{2, 5});
  CHECK(layers("nth_first(2)", 5) == Layers{0, 2, 4});
  CHECK(layers("nth_first(5)", 5) == Layers{0});
  CHECK(layers("skip_nth(2)", 5) == Layers{1, 3});
  CHECK(layers("skip_nth(3)", 5) == Layers{1, 2, 4});
  CHECK(layers("skip_nth(1)", 5).empty());
  CHECK(layers("first_n(2)", 5) == Layers{0, 1});
  CHECK(layers("last_n(2)", 5) == Layers{3, 4});
  CHECK(layers("skip_list([0,4])", 5) == Layers{1, 2, 3});
  CHECK(layers("only_list([0,4])", 5) == Layers{0, 4});
}

TEST_CASE("N and layer indices outside the model are rejected with the valid range") {
  CHECK(message("nth_last(5)", 4) == "nth_last(5): N is 5, but toy_llama has 4 layers; use 1 to 4");
  CHECK(message("segments(9)", 4) == "segments(9): N is 9, but toy_llama has 4 layers; use 1 to 4");
  CHECK(message("first_n(2)", 1) == "first_n(2): N is 2, but toy_llama has 1 layer; use 1 to 1");
  CHECK(message("skip_list([0,4])", 4) ==
        "skip_list([0,4]): layer 4 does not exist, toy_llama has 4 layers; use indices 0 to 3");
  Policy by_hand = policy("nth_last(2)");
  by_hand.blocks.n = 0;  // policy files may contain an N of 0
  CHECK(std::holds_alternative<Rejected>(place_regions(by_hand, toy_llama())));
}

TEST_CASE("segments contain consecutive layers, and the last segment may be shorter") {
  const auto regions = placed(policy("segments(3)"), toy_llama({.layers = 8}));
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].planned.first_scope == "blocks.0");
  CHECK(regions[0].planned.last_scope == "blocks.2");
  CHECK(regions[2].planned.layers == std::vector<int>{6, 7});
  CHECK(regions[0].range.end == regions[1].range.first);
}

TEST_CASE("a layer that the policy does not choose ends a segment") {
  Policy policy_with_hole = policy("segments(4)");
  policy_with_hole.blocks = {BlockChoice::Kind::kExcept, 0, {2}};
  const auto regions = placed(policy_with_hole, toy_llama({.layers = 8}));
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].planned.layers == std::vector<int>{0, 1});
  CHECK(regions[1].planned.layers == std::vector<int>{3, 4, 5, 6});
  CHECK(regions[2].planned.layers == std::vector<int>{7});
}

// As in a U-Net, layers of two block lists alternate: down 0, middle 0, down 1, down 2.
TEST_CASE("all blocks of a segment are from one block list") {
  testing::TraceBuilder build("unet");
  ValueId x = build.outside({2, 2}, "float32", true);
  for (const auto& [list, index] :
       {std::pair("down", 0), {"middle", 0}, {"down", 1}, {"down", 2}}) {
    const auto scope = build.scope(list, index);
    x = build.call("aten::silu", {x}, {2, 2}, {{0}, {}});
  }
  const auto regions = placed(policy("segments(2)"), build.finish());
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].range == OpRange{OpId(0), OpId(1)});
  CHECK(regions[1].range == OpRange{OpId(1), OpId(2)});
  CHECK(regions[2].range == OpRange{OpId(2), OpId(4)});
}

// Layers 0 and 1 run twice. A region ends when its last scope closes for the first time.
TEST_CASE("a layer that runs twice occurs once in each segment") {
  testing::TraceBuilder build("looped");
  ValueId x = build.outside({2, 2}, "float32", true);
  for (int run = 0; run < 4; ++run) {
    const auto scope = build.scope("blocks", run % 2);
    x = build.call("aten::silu", {x}, {2, 2}, {{0}, {}});
  }
  Policy by_hand = policy("segments(2)");
  by_hand.regions.n = 2;
  const Trace trace = build.finish();
  for (const int n : {1, 2}) {
    by_hand.regions.n = n;
    const auto regions = placed(by_hand, trace);
    CHECK(regions.size() == static_cast<std::size_t>(4 / n));
    for (const PlacedRegion& region : regions) {
      CHECK(region.range.end - region.range.first == n);
    }
  }
}

TEST_CASE(
    "policy root makes one region, from the first top-level scope to the last one before the "
    "loss") {
  const Trace trace = toy_llama({.layers = 3});
  const auto regions = placed(policy("root"), trace);
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].planned.first_scope == "embed");
  CHECK(regions[0].planned.last_scope == "head");
  CHECK(regions[0].planned.layers == std::vector<int>{0, 1, 2});
  CHECK(regions[0].range.first == 0_op);
  // The loss consists of log_softmax and nll_loss.
  CHECK(regions[0].range.end == trace.ops.end_id() - 2);
}

TEST_CASE("scope patterns make one region per matching scope inside chosen blocks") {
  Policy attention = policy("nth_last(2)");
  attention.regions = {RegionChoice::Kind::kScopes, 0, {"att*"}};
  const auto regions = placed(attention, toy_llama({.layers = 4}));
  REQUIRE(regions.size() == 2);
  CHECK(regions[0].planned.first_scope == "blocks.1.attention");
  CHECK(regions[1].planned.last_scope == "blocks.3.attention");
  attention.regions.patterns = {"attention", "ffn"};
  CHECK(placed(attention, toy_llama({.layers = 4})).size() == 4);
  attention.regions.patterns = {"moe"};
  const auto result = place_regions(attention, toy_llama({.layers = 4}));
  REQUIRE(std::holds_alternative<Rejected>(result));
  CHECK(std::get<Rejected>(result).message ==
        "nth_last(2): no scope in a chosen block matches moe; the blocks of toy_llama have the "
        "scopes attention, ffn");
}

TEST_CASE("of two nested scopes that match, the outer scope is the region") {
  testing::TraceBuilder build("nested");
  ValueId x = build.outside({4, 4}, "float32", true);
  {
    const auto block = build.scope("blocks", 0);
    const auto attention = build.scope("attention");
    x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    const auto core = build.scope("core");
    x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
  }
  Policy everything = policy("full");
  everything.regions = {RegionChoice::Kind::kScopes, 0, {"*"}};
  const auto regions = placed(everything, build.finish());
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].planned.first_scope == "blocks.0.attention");
  CHECK(regions[0].range == OpRange{0_op, 2_op});
}

TEST_CASE("layer indices start from 0 in every block list") {
  testing::TraceBuilder build("two_lists");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (const char* list : {"encoder", "decoder"}) {
    for (int layer = 0; layer < (list[0] == 'e' ? 2 : 4); ++layer) {
      const auto scope = build.scope(list, layer);
      x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    }
  }
  const Trace trace = build.finish();
  std::vector<std::string> scopes;
  for (const PlacedRegion& region : placed(policy("last_n(1)"), trace)) {
    scopes.push_back(region.planned.first_scope);
  }
  CHECK(scopes == std::vector<std::string>{"encoder.1", "decoder.3"});
}

TEST_CASE("a policy that needs layers rejects a model without layers") {
  testing::TraceBuilder build("flat");
  const Trace trace = build.finish();
  CHECK(std::holds_alternative<Rejected>(place_regions(policy("full"), trace)));
  CHECK(placed(policy("none"), trace).empty());
}

}  // namespace
}  // namespace rematch
