// Tests policies whose regions are parts of a block: split blocks and modules.
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/describe.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/held.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

std::vector<std::string> first_scopes(const Plan& plan) {
  std::vector<std::string> scopes;
  for (const PlannedRegion& region : plan.regions) scopes.push_back(region.first_scope);
  return scopes;
}

// Attention has four matmuls, an even number. So the feed-forward keeps the same matmuls whether or
// not its region starts a new count.
TEST_CASE("attention and feed-forward are separate regions, each with its own policy") {
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

// Block 0 is dense, and block 1 has experts.
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

TEST_CASE("compiled torchtitan splits only blocks with experts") {
  const Trace trace = dense_then_experts();
  CHECK(first_scopes(plan_of("sac_split_flex_compiled", trace)) ==
        std::vector<std::string>{"blocks.0", "blocks.1.attention", "blocks.1.moe"});
  const Plan eager = plan_of("sac_split_flex_eager", trace);
  CHECK(first_scopes(eager) == std::vector<std::string>{"blocks.0.attention", "blocks.0.ffn",
                                                        "blocks.1.attention", "blocks.1.moe"});
  CHECK(decisions(eager.types.at(eager.regions[0].type), kMm) == "rr");
  CHECK(decisions(eager.types.at(eager.regions[3].type), kMm) == "SrS");
}

TEST_CASE("sac_split rejects a policy that cannot apply to a part of a block") {
  CHECK_THAT(rejection_of("sac_split(attn: segments(2), ffn: full)"),
             Catch::Contains("cannot apply to attention"));
  CHECK_THAT(rejection_of("sac_split(attn: sac_titan, ffn: sac_titan_even)"),
             Catch::Contains("same rule"));
  CHECK_THAT(rejection_of("sac_split(attn: sac_titan_2024, ffn: sac_titan)"),
             Catch::Contains("exclude different matmuls from the count"));
  CHECK_THAT(rejection_of("sac_split(attn: sac_titan, ffn: sac_titan_excluding([ffn]))"),
             Catch::Contains("exclude different matmuls from the count"));
  CHECK_FALSE(policy_of("sac_split(attn: full, ffn: full_nostop)").early_stop);
  CHECK_THAT(rejection_of("sac_split(full)"), Catch::Contains("write sac_split(attn:"));
  CHECK_THAT(rejection_of("sac_split(attn: ful, ffn: full)"), Catch::Contains("did you mean"));
}

// Builds a norm, three projections that read its result (two of them rotated), attention, a
// projection and a residual add. Autograd does not save the results of q's and k's matmuls, because
// backward of the rotation reads only its table.
Trace normed_attention() {
  TraceBuilder builder("normed");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  const auto linear = [&builder](ValueId in) {
    return builder.call("aten::mm", {in, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
  };
  const ValueId table = builder.outside({8, 8});
  const auto rotated = [&builder, table](ValueId in) {
    return builder.call("aten::mul.Tensor", {in, table}, {8, 8}, {{1}, {}});
  };
  {
    const auto block = builder.scope("blocks", 0);
    ValueId normed;
    {
      const auto norm = builder.scope("attention_norm");
      normed = builder.call("aten::mul.Tensor", {x, builder.parameter({8})}, {8, 8}, {{0, 1}, {}});
    }
    const auto attention = builder.scope("attention");
    const ValueId q = rotated(linear(normed));
    const ValueId k = rotated(linear(normed));
    const ValueId v = linear(normed);
    ValueId out;
    {
      const auto core = builder.scope("core");
      out = builder.call("rematch::attention", {q, k, v}, {8, 8}, {{0, 1, 2}, {0}});
    }
    builder.call("aten::add.Tensor", {x, linear(out)}, {8, 8});
  }
  return builder.finish();
}

// Returns the names of the recomputed ops, in order.
std::vector<std::string> executed_again(const Trace& trace, const Plan& plan, Schedule schedule) {
  std::vector<std::string> names;
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RegionType& type = plan.types.at(plan.regions[i].type);
    for (const ExecutedOp& op :
         simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed) {
      names.push_back(trace.ops.at(op.op).name);
    }
  }
  return names;
}

TEST_CASE("recompute_modules makes a region for each heavy module, such as mlp") {
  CHECK(first_scopes(plan_of("recompute_modules([mlp])", toy_llama({.layers = 1}))) ==
        std::vector<std::string>{"blocks.0.ffn"});
  CHECK_THAT(rejection_of("recompute_modules([mpl])"), Catch::Contains("did you mean 'mlp'"));
  CHECK_THAT(rejection_of("recompute_modules"), Catch::Contains("needs a list: write"));
  CHECK_THAT(rejection_of("recompute_modules([])"), Catch::Contains("needs modules: core_attn, "));
  CHECK(rejection_of("recompute_modules([mlp,mlp])") ==
        "recompute_modules names mlp twice; name each module once");
}

// Megatron-LM's output-discarding checkpoint recomputes only the module.
TEST_CASE(
    "recompute_modules recomputes a light module, such as layernorm, without the rest of its "
    "block") {
  const Trace trace = normed_attention();
  const Plan plan = plan_of("recompute_modules([layernorm])", trace);
  CHECK(first_scopes(plan) == std::vector<std::string>{"blocks.0"});
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CAPTURE(schedule);
    CHECK(executed_again(trace, plan, schedule) == std::vector<std::string>{"aten::mul.Tensor"});
  }
  // Outside the module, the region keeps only tensors that backward reads. Compared with autograd
  // without checkpointing, only the norm's result is not kept.
  for (const PlannedOp& op : plan.types.at(0).ops) CHECK_FALSE(op.dead_save);
  CHECK(held_after_forward(trace, plan_of("none", trace)).total().count -
            held_after_forward(trace, plan).total().count ==
        8 * 8 * 4);
  const Json json = describe_json(plan, trace);
  CHECK(json.at("types").at(0).at("by_demand") == true);
  CHECK(json.at("types").at(0).at("regions").at(0).at("first_scope") == "blocks.0");
}

TEST_CASE("recompute_modules accepts heavy and light modules together") {
  const Trace trace = normed_attention();
  const Plan plan = plan_of("recompute_modules([core_attn,layernorm])", trace);
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CAPTURE(schedule);
    CHECK(executed_again(trace, plan, schedule) ==
          std::vector<std::string>{"rematch::attention", "aten::mul.Tensor"});
  }
}

TEST_CASE("the error for missing modules lists the model's modules") {
  const Trace trace = normed_attention();
  const auto warnings_of = [&trace](const Policy& policy) {
    const auto plan = resolve(policy, trace, NoEffect::kAllow);
    return plan_warnings(policy, std::get<Plan>(plan), trace);
  };
  const std::string has =
      ", so nothing is recomputed for it; supported modules in this model: core_attn, "
      "layernorm";
  struct Row {
    std::string policy;
    std::string lacks;
  };
  for (const Row& row : {Row{"recompute_modules([core_attn,mlp])", "no mlp"},
                         Row{"recompute_modules([layernorm,moe_act,moe])", "no moe_act, no moe"},
                         Row{"megatron(recompute_modules=[core_attn,mlp])", "no mlp"}}) {
    CAPTURE(row.policy);
    CHECK(warnings_of(policy_of(row.policy)).back() ==
          row.policy + ": normed has " + row.lacks + has);
  }
  CHECK(warnings_of(policy_of("recompute_modules([core_attn,layernorm])")).empty());
  Policy file = policy_of("recompute_modules([core_attn])");
  file.name = "mine";
  for (const std::string& warning : warnings_of(from_file(file))) {
    CHECK_THAT(warning, !Catch::Contains("normed has no"));
  }
  const auto refused = resolve(policy_of("recompute_modules([moe_act])"), trace);
  CHECK(std::get<Rejected>(refused).message ==
        "recompute_modules([moe_act]): normed has no moe_act" + has);
}

TEST_CASE("full_except keeps random draws and the ops that its selectors match") {
  const Trace toy = toy_llama();
  const Plan plan = plan_of("full_except(*.ffn::aten::mm#1,attention_forward)", toy);
  CHECK(decisions(plan.types.at(0), kMm) == "rrrrSrr");
  CHECK(decisions(plan.types.at(0), "rematch::attention") == "S");
  CHECK_THAT(rejection_of("full_except(attention_forwrd)"), Catch::Contains("attention_forward"));
}

TEST_CASE("self-attention is kept, but cross-attention is not") {
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
