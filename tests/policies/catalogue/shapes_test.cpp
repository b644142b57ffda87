#include "policies/catalogue/shapes.h"
#include "policies/base/rejected.h"

#include <algorithm>

#include "policies/predict/step/step.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

Plan combined(const std::vector<Trace>& traces, const std::vector<Plan>& plans) {
  auto plan = combine_shapes(traces, plans);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(std::move(plan));
}

std::string rejection(const std::vector<Trace>& traces, const std::vector<Plan>& plans) {
  const auto plan = combine_shapes(traces, plans);
  REQUIRE(std::holds_alternative<Rejected>(plan));
  return std::get<Rejected>(plan).message;
}

std::vector<std::string> first_scopes(const ShapePlan& plan) {
  std::vector<std::string> scopes;
  for (const PlannedRegion& region : plan.regions) scopes.push_back(region.first_scope);
  return scopes;
}

StepPrediction predicted(const Trace& trace, const Plan& plan) {
  return StepSimulator(trace, OptimizerKind::kNothing).simulate(plan, Schedule::kOnDemand);
}

Plan of(const char* policy, const Trace& trace) {
  return std::get<Plan>(resolve(policy_of(policy), trace, NoEffect::kAllow));
}

const std::vector<std::string> kAllBlocks = {"blocks.0", "blocks.1", "blocks.2", "blocks.3"};

TEST_CASE(
    "if the regions of two plans have the same scopes, combining the plans changes neither plan") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("full", traces[0]), of("save_mm", traces[1])};
  const Plan plan = combined(traces, plans);
  CHECK(plans_of_shapes(plan) == plans);
  CHECK(plan_of_trace(plan, trace_sha256(traces[1])) == plans[1]);
  CHECK(combined({traces[0]}, {plans[0]}) == plans[0]);
}

TEST_CASE("a combined plan has the hidden effects of the traces of all input shapes") {
  std::vector<Trace> traces = {toy_llama(), toy_biased()};
  traces[0].hidden = {{{"lib.ops:Rotary", std::vector<int>{1}}}, {}, {"lib::noisy"}};
  traces[1].hidden = {{{"lib.ops:Rotary", std::vector<int>{0}}}, {{"lib::scale", {2}}}, {}};
  const std::vector<Plan> plans = {of("full", traces[0]), of("save_mm", traces[1])};
  const HiddenEffects all = {
      {{"lib.ops:Rotary", std::vector<int>{0, 1}}}, {{"lib::scale", {2}}}, {"lib::noisy"}};
  CHECK(plans[0].hidden == traces[0].hidden);
  CHECK(combined(traces, plans).hidden == all);
  CHECK(combined({traces[1], traces[0]}, {plans[1], plans[0]}).hidden == all);
  CHECK(combined({traces[1]}, {plans[1]}).hidden == traces[1].hidden);
}

// In the first shape's plan, blocks 0 and 1 are one region, and blocks 2 and 3 are another. In the
// second shape's plan, each block is a region.
TEST_CASE("two regions of one plan may cover the same layers as one region of another plan") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("segments(2)", traces[0]), of("full", traces[1])};
  CHECK(plans_of_shapes(combined(traces, plans)) == plans);
}

TEST_CASE("an input shape without checkpointing gets regions that keep everything") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("full", traces[0]), of("none", traces[1])};
  const Plan plan = combined(traces, plans);
  REQUIRE(plan.other_shapes.size() == 1);
  CHECK(first_scopes(plan.other_shapes[0]) == kAllBlocks);
  std::int64_t num_views = 0;
  for (const PlannedRegion& region : plan.other_shapes[0].regions) {
    CHECK(region.layers.size() == 1);
    const RegionType& type = plan.other_shapes[0].types.at(static_cast<std::size_t>(region.type));
    CHECK(type.by_demand);
    num_views += std::count_if(type.ops.begin(), type.ops.end(),
                               [](const PlannedOp& op) { return op.reason == "view: free"; });
  }
  const Plan other = plans_of_shapes(plan)[1];
  CHECK(predicted(traces[1], other).recomputed_ops <= num_views);
  CHECK(predicted(traces[1], other).peak_bytes() <= predicted(traces[1], plans[1]).peak_bytes());
}

TEST_CASE("plans that checkpoint different layers can be combined") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("only_list([0, 2])", traces[0]),
                                   of("only_list([2, 3])", traces[1])};
  const Plan plan = combined(traces, plans);
  const std::vector<std::string> all = {"blocks.0", "blocks.2", "blocks.3"};
  CHECK(first_scopes(plan) == all);
  CHECK(first_scopes(plan.other_shapes[0]) == all);
}

// In the first shape's plan, a region is a whole block. In the second shape's plan, the parts of a
// block are separate regions. When a block begins, the engine may not know the shape yet, and may
// open the region of the first plan.
TEST_CASE("regions of one plan are merged if one region of another plan contains all of them") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("full", traces[0]),
                                   of("sac_split(attn: full, ffn: none)", traces[1])};
  REQUIRE(first_scopes(plans[1])[0] == "blocks.0.attention");
  const Plan plan = combined(traces, plans);
  CHECK(first_scopes(plan.other_shapes[0]) == kAllBlocks);
  const RegionType& type = plan.other_shapes[0].types[0];
  CHECK(decisions(type, {"aten::addmm"}) == "rrrrSSr");  // the last result is not kept, because no
                                                         // op reads it
  const Plan other = plans_of_shapes(plan)[1];
  CHECK(predicted(traces[1], other).recomputed_ops > 0);
}

// Two shapes differ only in their sizes, which the list of ops does not show.
TEST_CASE("input shapes that run the same ops get the plan of the larger shape") {
  const std::vector<Trace> traces = {toy_llama({.tokens = 8}), toy_llama({.tokens = 32}),
                                     toy_biased()};
  const std::vector<Plan> plans = {of("none", traces[0]), of("full", traces[1]),
                                   of("save_mm", traces[2])};
  const Plan plan = combined(traces, plans);
  CHECK(first_scopes(plan) == kAllBlocks);
  CHECK(plan.trace_sha256 == trace_sha256(traces[0]));
  CHECK(plan.policy == "full");
  CHECK(plan.types == of("full", traces[0]).types);
  CHECK(plan.other_shapes[0] == plans[1]);
  CHECK(plan.other_shapes[1] == plans[2]);
}

// In the second shape, layer 2 runs different ops, so before layer 2 the engine cannot know the
// shape. After layer 0, the first plan's region continues, but the second plan's region ends.
TEST_CASE("a region of one plan is split at the op where a region of another plan ends") {
  const auto layers = [](const char* third) {
    TraceBuilder build("layers");
    ValueId x = build.outside({4, 4}, "float32", true);
    for (int layer = 0; layer < 3; ++layer) {
      const auto scope = build.scope("blocks", layer);
      x = build.call("aten::mm", {x, build.parameter({4, 4})}, {4, 4}, {{0, 1}, {}});
      x = build.call(layer == 2 ? third : "aten::silu", {x}, {4, 4}, {{0}, {}});
    }
    return build.finish();
  };
  const std::vector<Trace> traces = {layers("aten::silu"), layers("aten::gelu")};
  const std::vector<std::string> all = {"blocks.0", "blocks.1", "blocks.2"};
  for (const char* other : {"none", "full"}) {
    const std::vector<Plan> plans = {of("segments(3)", traces[0]), of(other, traces[1])};
    const Plan plan = combined(traces, plans);
    CHECK(plan.policy == "segments(3)");
    CHECK(first_scopes(plan) == all);
    for (const RegionType& type : plan.types) CHECK(decisions(type, kMm) == "r");
    CHECK(plan.other_shapes[0].policy == other);
    CHECK(first_scopes(plan.other_shapes[0]) == all);
  }
}

// The first shape has no layer 1, so during layer 0 the engine cannot know the shape.
TEST_CASE("input shapes share the plan of the larger shape until one shape skips a layer") {
  const auto layers = [](const std::vector<int>& indices) {
    TraceBuilder build("layers");
    ValueId x = build.outside({4, 4}, "float32", true);
    for (const int layer : indices) {
      const auto scope = build.scope("blocks", layer);
      x = build.call("aten::mm", {x, build.parameter({4, 4})}, {4, 4}, {{0, 1}, {}});
      x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    }
    return build.finish();
  };
  const std::vector<Trace> traces = {layers({0, 2}), layers({0, 1, 2})};
  const auto mm_of = [](const ShapePlan& plan, std::size_t region) {
    return decisions(plan.types[static_cast<std::size_t>(plan.regions[region].type)], kMm);
  };
  for (const auto& [small, large] : {std::pair{"save_mm", "full"}, {"full", "save_mm"}}) {
    const std::vector<Plan> plans = {of(small, traces[0]), of(large, traces[1])};
    const Plan plan = combined(traces, plans);
    CHECK(mm_of(plan, 0) == mm_of(plans[1], 0));
    CHECK(mm_of(plan, 1) == mm_of(plans[0], 1));
    CHECK(plan.other_shapes[0] == plans[1]);
  }
}

// In the second trace, all ops of a block are in its inner scope.
TEST_CASE("plans are combined even if a region inside a block contains all ops of the block") {
  const auto blocks = [](bool has_core) {
    TraceBuilder build("blocks");
    ValueId x = build.outside({4, 4}, "float32", true);
    for (int layer = 0; layer < 2; ++layer) {
      const auto scope = build.scope("blocks", layer);
      if (has_core) x = build.call("aten::mm", {x, build.parameter({4, 4})}, {4, 4}, {{0, 1}, {}});
      const auto tail = build.scope("tail");
      x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    }
    return build.finish();
  };
  const std::vector<Trace> traces = {blocks(true), blocks(false)};
  Policy tails;
  tails.name = "tails";
  tails.regions = {.kind = RegionChoice::Kind::kScopes, .patterns = {"tail"}};
  const Plan inner = std::get<Plan>(resolve(tails, traces[1], NoEffect::kAllow));
  REQUIRE(first_scopes(inner)[0] == "blocks.0.tail");
  const Plan plan = combined(traces, {of("full", traces[0]), inner});
  CHECK(first_scopes(plan.other_shapes[0]) == std::vector<std::string>{"blocks.0", "blocks.1"});
}

TEST_CASE("plans that cannot be combined are rejected") {
  const std::vector<Trace> traces = {toy_llama(), toy_biased()};
  const std::vector<Plan> plans = {of("full", traces[0]), of("full", traces[1])};
  CHECK_THAT(rejection(traces, {plans[0]}), Contains("1 plans for 2 traces"));
  CHECK_THAT(rejection({}, {}), Contains("at least one"));
  CHECK_THAT(rejection(traces, {plans[1], plans[0]}),
             Contains("plan 0 was made for a different trace"));
  CHECK_THAT(rejection(traces, {plans[0], combined(traces, plans)}),
             Contains("plan 1 has several shapes"));
}

// A rank that recomputes an all-gather would wait forever for ranks that kept its result.
TEST_CASE("input shapes with different collectives in backward are rejected") {
  const auto gathers = [](const char* activation) {
    TraceBuilder build("gathers");
    ValueId x = build.outside({4, 4}, "float32", true);
    for (int layer = 0; layer < 2; ++layer) {
      const auto scope = build.scope("blocks", layer);
      const ValueId normed = build.call(activation, {x}, {4, 4}, {{0}, {}});
      const ValueId whole =
          build.call("_c10d_functional::all_gather_into_tensor", {normed}, {8, 4});
      build.wait(whole);
      x = build.call("aten::mm", {whole, build.parameter({4, 4})}, {8, 4}, {{0, 1}, {}});
    }
    return build.finish();
  };
  const std::vector<Trace> traces = {gathers("aten::silu"), gathers("aten::gelu")};
  const auto plans = [&](const char* first, const char* second) {
    return std::vector<Plan>{of(first, traces[0]), of(second, traces[1])};
  };
  CHECK_THAT(rejection(traces, plans("full", "keep_collectives(full)")),
             Contains("shapes 0 and 1 would issue different collectives"));
  CHECK(combined(traces, plans("full", "full")).other_shapes.size() == 1);
  const std::vector<Plan> kept = plans("keep_collectives(full)", "keep_collectives(full)");
  CHECK(combined(traces, kept).other_shapes.size() == 1);
}

}  // namespace
}  // namespace rematch::testing
