// Policies whose regions are parts of a block: split ones and modules.
#include "policies/predict/held.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

constexpr std::string_view kMm = "aten::mm";

std::vector<std::string> first_scopes(const Plan& plan) {
  std::vector<std::string> scopes;
  for (const PlannedRegion& region : plan.regions) scopes.push_back(region.first_scope);
  return scopes;
}

// Attention has four matmuls, an even number, so the feed-forward's parity stays as it was.
TEST_CASE("attention and feed-forward are regions of their own, each under its policy") {
  const Trace toy = toy_llama({.layers = 1});
  Plan plan = plan_of("sac_split(attn: sac_titan, ffn: sac_titan)", toy);
  CHECK(first_scopes(plan) == std::vector<std::string>{"blocks.0.attention", "blocks.0.ffn"});
  CHECK(decisions(plan.types.at(plan.regions[0].type), kMm) == "SrSr");
  CHECK(decisions(plan.types.at(plan.regions[1].type), kMm) == "SrS");

  plan = plan_of("sac_split(attn: full, ffn: sac_titan)", toy);
  CHECK(decisions(plan.types.at(plan.regions[0].type), kMm) == "rrrr");
  CHECK(decisions(plan.types.at(plan.regions[1].type), kMm) == "SrS");

  plan = plan_of("sac_split(attn: none, ffn: full)", toy);
  CHECK(first_scopes(plan) == std::vector<std::string>{"blocks.0.ffn"});
}

// Block 0 is dense, block 1 has experts.
Trace dense_then_experts() {
  TraceBuilder builder("dense_then_experts");
  const auto linear = [&builder](ValueId x) {
    return builder.call("aten::mm", {x, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
  };
  ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  for (const char* second : {"ffn", "moe"}) {
    const auto block = builder.scope("blocks", second == std::string_view("ffn") ? 0 : 1);
    {
      const auto attention = builder.scope("attention");
      x = linear(linear(x));
    }
    x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
    const auto part = builder.scope(second);
    x = linear(linear(linear(x)));
  }
  return builder.finish();
}

TEST_CASE("compiled, only blocks with experts are split") {
  const Trace trace = dense_then_experts();
  CHECK(first_scopes(plan_of("sac_split_flex_compiled", trace)) ==
        std::vector<std::string>{"blocks.0", "blocks.1.attention", "blocks.1.moe"});
  const Plan eager = plan_of("sac_split_flex_eager", trace);
  CHECK(first_scopes(eager) == std::vector<std::string>{"blocks.0.attention", "blocks.0.ffn",
                                                        "blocks.1.attention", "blocks.1.moe"});
  CHECK(decisions(eager.types.at(eager.regions[0].type), kMm) == "rr");
  CHECK(decisions(eager.types.at(eager.regions[3].type), kMm) == "SrS");
}

TEST_CASE("parts that no policy can rule alone are refused") {
  CHECK_THAT(rejection_of("sac_split(attn: segments(2), ffn: full)"),
             Catch::Contains("cannot rule attention"));
  CHECK_THAT(rejection_of("sac_split(attn: sac_titan, ffn: sac_titan_even)"),
             Catch::Contains("parity"));
  CHECK_THAT(rejection_of("sac_split(full)"), Catch::Contains("write sac_split(attn:"));
  CHECK_THAT(rejection_of("sac_split(attn: ful, ffn: full)"), Catch::Contains("did you mean"));
}

TEST_CASE("heavy modules become regions, of light ones the outputs are dropped") {
  const Trace toy = toy_llama({.layers = 1});
  CHECK(first_scopes(plan_of("recompute_modules([mlp])", toy)) ==
        std::vector<std::string>{"blocks.0.ffn"});
  TraceBuilder builder("normed");
  ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    {
      const auto norm = builder.scope("attention_norm");
      x = builder.call("aten::mul.Tensor", {x, builder.parameter({8})}, {8, 8}, {{0, 1}, {}});
    }
    x = builder.call("aten::mm", {x, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
    x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
  }
  const Trace normed = builder.finish();
  const Plan light = plan_of("recompute_modules([layernorm])", normed);
  CHECK(first_scopes(light) == std::vector<std::string>{"blocks.0"});
  CHECK(decisions(light.types.at(0), "aten::mul.Tensor") == "r");
  CHECK(decisions(light.types.at(0), kMm) == "S");
  // Of the rest only what backward reads is held: no more than without checkpointing.
  for (const PlannedOp& op : light.types.at(0).ops) CHECK_FALSE(op.dead_save);
  CHECK(held_after_forward(normed, light).total() <
        held_after_forward(normed, plan_of("none", normed)).total());
  CHECK_THAT(rejection_of("recompute_modules([mlp,layernorm])"), Catch::Contains("of one kind"));
  CHECK_THAT(rejection_of("recompute_modules([mpl])"), Catch::Contains("did you mean 'mlp'"));
  CHECK_THAT(rejection_of("recompute_modules"), Catch::Contains("needs modules"));
}

TEST_CASE("full_except keeps what its selectors name and what was drawn") {
  const Trace toy = toy_llama();
  const Plan plan = plan_of("full_except(*.ffn::aten::mm#1,attention_forward)", toy);
  CHECK(decisions(plan.types.at(0), kMm) == "rrrrSrr");
  CHECK(decisions(plan.types.at(0), "rematch::attention") == "S");
  CHECK_THAT(rejection_of("full_except(attention_forwrd)"), Catch::Contains("attention_forward"));
}

TEST_CASE("self attention is kept, cross attention is not") {
  TraceBuilder builder("two_attentions");
  ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    for (const char* name : {"self_attention", "cross_attention"}) {
      const auto part = builder.scope(name);
      x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
      x = builder.call("rematch::attention", {x}, {8, 8}, {{0}, {0}});
    }
    x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
  }
  const Trace trace = builder.finish();
  CHECK(decisions(plan_of("attn_only_self", trace).types.at(0), "rematch::attention") == "Sr");
  CHECK(decisions(plan_of("attn_only", trace).types.at(0), "rematch::attention") == "SS");
}

}  // namespace
}  // namespace rematch::testing
