// Tests the warnings about a plan that its author may not have intended.
#include "policies/catalogue/warnings.h"
#include "policies/base/rejected.h"

#include "tests/policies/catalogue/decisions.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

using Warnings = std::vector<std::string>;

Warnings warnings_of(const Policy& policy, const Trace& trace) {
  auto plan = resolve(policy, trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return plan_warnings(policy, std::get<Plan>(plan), trace);
}

Warnings warnings_of(std::string_view text, const Trace& trace) {
  return warnings_of(policy_of(text), trace);
}

TEST_CASE("policies without pitfalls give no warning") {
  for (const char* policy :
       {"none", "full", "full_nostop", "nth_first(2)", "first_n(3)", "skip_list([3])", "attn_only",
        "save_mm", "sac_titan", "segments(2)", "full_except(attention_forward)", "titan:full"}) {
    CAPTURE(policy);
    CHECK(warnings_of(policy, toy_llama()).empty());
  }
}

// nth_last(2) chooses layers 1 and 3 of four, which includes the last layer. nth_first(2) chooses 0
// and 2.
TEST_CASE("checkpointing the last layer but not all layers gives a warning") {
  for (const char* policy : {"nth_last(2)", "nth_first(3)", "last_n(1)", "only_list([3])"}) {
    CAPTURE(policy);
    const Warnings warnings = warnings_of(policy, toy_llama());
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::Contains("the last layer, 3") &&
                                Catch::Contains("saves nothing at the start of backward"));
  }
}

TEST_CASE("a mode of a system gives a warning about what the system does silently") {
  const auto first = [](std::string_view text) { return warnings_of(text, toy_llama()).at(0); };
  CHECK_THAT(first("fastvideo:block_skip"),
             Catch::Contains("cannot be changed, so the mode equals full"));
  CHECK_THAT(first("torchtune(ac_mode=selective,ac_option=2)"),
             Catch::Contains("the mode's layer counter is never reset"));
  CHECK_THAT(first("titan:flux"), Catch::Contains("recomputes whole blocks"));
  CHECK_THAT(first("titan:split_flex_eager"), Catch::Contains("attention is fully recomputed"));
  CHECK_THAT(first("maxtext:minimal_with_quantization"),
             Catch::Contains("rematch quantizes nothing"));
}

TEST_CASE("a pitfall that the given arguments avoid is listed but gives no warning") {
  CHECK(warnings_of("fastvideo(type=block_skip,n_layer=1)", toy_llama()).empty());
  // expects only the warning about the last layer
  CHECK(warnings_of("diffusers(skip_layers=[1])", toy_llama()).size() == 1);
}

TEST_CASE(
    "if core attention is one fused op, a warning says that recomputing this op gains nothing") {
  TraceBuilder builder("cored");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    const auto attention = builder.scope("attention");
    const auto core = builder.scope("core");
    builder.call("rematch::attention", {x, x, x}, {8, 8}, {{0, 1, 2}, {0}});
  }
  const Trace trace = builder.finish();
  for (const char* policy :
       {"recompute_modules([core_attn])", "megatron(recompute_granularity=selective)",
        "megatron(recompute_modules=[core_attn])", "megatron:recompute_activations",
        "megatron(recompute_granularity=selective,recompute_modules=[core_attn])"}) {
    CHECK(warnings_of(policy, trace) ==
          Warnings{std::string(policy) +
                   ": attention is one fused op here, so recomputing it saves almost nothing"});
  }
  Trace of_matmuls = trace;
  for (TracedOp& op : of_matmuls.ops) {
    if (op.op_class == OpClass::kAttentionForward) op.op_class = OpClass::kMatmul;
  }
  CHECK(warnings_of("recompute_modules([core_attn])", of_matmuls).empty());
}

TEST_CASE("a supported mode with a known pitfall gives a warning") {
  for (const SystemEntry& entry : system_entries()) {
    if (entry.pitfall.text.empty() || entry.stands_for.empty()) continue;
    if (entry.pitfall.shown == PitfallShown::kInList) continue;
    const std::string text = typed(entry);
    CAPTURE(text);
    // A pitfall may concern only models with random draws, biases or experts.
    Trace toy =
        entry.pitfall.concern == Policy::Concern::kExperts ? toy_three_kinds() : toy_biased();
    toy.ops[5_op].draws_random = true;
    const Warnings warnings = plan_warnings(policy_of(text), plan_of("full", toy), toy);
    REQUIRE_FALSE(warnings.empty());
    CHECK(warnings[0] == text + ": " + std::string(entry.pitfall.text));
  }
}

// toy_llama has no biases, experts or random draws. Each other model has some of them.
TEST_CASE("a pitfall that cannot apply to the model gives no warning") {
  Trace draws = toy_llama();
  draws.ops[5_op].draws_random = true;
  const std::vector<std::pair<const char*, Trace>> rows = {
      {"titan:selective", toy_biased()},
      {"titan:selective", toy_three_kinds()},
      {"titan:selective_2024", toy_biased()},
      {"automodel:selective", toy_three_kinds()},
      {"fastvideo:full", draws},
      {"modalities:full", draws}};
  for (const auto& [policy, concerned] : rows) {
    CAPTURE(policy);
    CHECK(plan_warnings(policy_of(policy), plan_of("full", toy_llama()), toy_llama()).empty());
    CHECK_FALSE(plan_warnings(policy_of(policy), plan_of("full", concerned), concerned).empty());
  }
  // These warnings concern eval(), FSDP1 and fp8, none of which this trace uses.
  for (const char* policy :
       {"diffusers:enable_gradient_checkpointing", "huggingface:gradient_checkpointing",
        "modalities:fsdp1(activation_checkpointing_modules=[GPT2Block])",
        "megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=2)"}) {
    CAPTURE(policy);
    CHECK(warnings_of(policy, toy_llama()).empty());
  }
  // the warning about veomni depends on the plan, not on the model
  CHECK(warnings_of("veomni(recompute_last_n_layers=1)", toy_llama()).size() == 1);
}

TEST_CASE(
    "a policy with one region for the whole model warns that its peak is as high as without "
    "checkpointing") {
  CHECK_THAT(warnings_of("root", toy_llama()).at(0),
             Catch::Contains("the peak is as high as under policy none"));
}

// Linears with a bias run aten::addmm, but sac_titan_2024 counts only aten::mm.
TEST_CASE(
    "the warning for an alternating policy without matches lists ops that the policy could count") {
  const Warnings warnings = warnings_of("sac_titan_2024", toy_biased());
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("every second match of aten::mm") &&
                              Catch::Contains("the matmuls in its regions are aten::addmm"));
}

TEST_CASE(
    "a selector without a match gives a warning, unless it comes from the catalogue's own list") {
  CHECK(warnings_of("titan:selective(force_recompute_mm_shapes_by_fqns=[moe.router.gaet])",
                    toy_llama())
            .back() ==
        "titan:selective(force_recompute_mm_shapes_by_fqns=[moe.router.gaet]): nothing in its "
        "regions matches *moe.router.gaet*::aten::mm");
  CHECK_THAT(warnings_of("full_except(*.fnn::matmul,attention_forward)", toy_llama()).at(0),
             Catch::Contains("nothing in its regions matches *.fnn::matmul"));
  CHECK(warnings_of("sac_modalities(aten.mm,aten.max)", toy_llama()) ==
        Warnings{"sac_modalities(aten.mm,aten.max): nothing in its regions matches "
                 "aten::max.default"});
  // A file that holds exactly the catalogue's policy gives no warning.
  CHECK(warnings_of(from_file(policy_of("attn_only")), toy_llama()).empty());
  Policy mine = policy_of("attn_only");
  mine.name = "mine";
  CHECK_THAT(warnings_of(from_file(mine), toy_llama()).at(0),
             Catch::Contains("matches collective"));
  // This attention op is for another device, but has the same class as the attention of the trace,
  // so the selector matches.
  mine.save = {{"", "aten::_scaled_dot_product_flash_attention", std::nullopt}};
  CHECK(warnings_of(from_file(mine), toy_llama()).empty());
}

TEST_CASE(
    "a scope without a match gives a warning, unless it comes from the catalogue's own policy") {
  Policy mine = policy_of("sac_split(attn: full, ffn: full)");
  CHECK(warnings_of(mine, toy_llama()).empty());
  mine.name = "mine";
  mine.regions.patterns = {"attention", "fnn"};
  CHECK(warnings_of(from_file(mine), toy_llama()) ==
        Warnings{"mine: no scope in its blocks matches fnn"});
  mine.regions.only_with = "moe";
  CHECK(warnings_of(from_file(mine), toy_llama()).back() ==
        "mine: no scope in its blocks matches fnn");
}

TEST_CASE("sac_split warns if the model lacks a part that was given a policy") {
  TraceBuilder builder("attention_alone");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    const auto attention = builder.scope("attention");
    builder.call("aten::mm", {x, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
  }
  const Trace trace = builder.finish();
  for (const char* policy :
       {"sac_split(attn: sac_titan, ffn: full)", "sac_split(attn: sac_titan, ffn: sac_titan)"}) {
    CAPTURE(policy);
    CHECK(warnings_of(policy, trace).back() ==
          std::string(policy) +
              ": no block has a scope of the feed-forward (ffn, moe), so its policy does nothing");
    for (const std::string& warning : warnings_of(policy, toy_llama())) {
      CHECK_THAT(warning, !Catch::Contains("no block has"));
    }
  }
  CHECK(warnings_of("sac_split(attn: full, ffn: none)", trace).empty());
}

// The blocks of toy_llama contain the scope ffn and the op aten::mm, but neither moe nor aten::bmm.
TEST_CASE("a policy with several expected scopes or ops needs only one match") {
  const auto is_met = [](const Policy::Expectation& expected) {
    Policy policy = policy_of("full");
    policy.expectations = {expected};
    return warnings_of(policy, toy_llama()).empty();
  };
  const Selector mm{"", "aten::mm", std::nullopt};
  const Selector bmm{"", "aten::bmm", std::nullopt};
  CHECK(is_met({.scopes = {"moe", "ffn"}}));
  CHECK(is_met({.ops = {bmm, mm}}));
  CHECK(is_met({.scopes = {"moe"}, .ops = {mm}}));
  CHECK_FALSE(is_met({.scopes = {"moe"}, .ops = {bmm}}));
  CHECK_FALSE(is_met({.warning = "always"}));
}

TEST_CASE("expected scopes and ops must be in the layers and regions of the policy") {
  const Trace trace = toy_three_kinds();  // moe in layer 1, cross_attention in layer 2
  const auto num_warnings = [&trace](const char* text, const Policy::Expectation& expected) {
    Policy policy = policy_of(text);
    const std::size_t others = warnings_of(policy, trace).size();
    policy.expectations = {expected};
    return warnings_of(policy, trace).size() - others;
  };
  const Selector in_cross_attention{"*.cross_attention", "matmul", std::nullopt};
  CHECK(num_warnings("only_list([1])", {.scopes = {"moe"}}) == 0);
  CHECK(num_warnings("only_list([0])", {.scopes = {"moe"}}) == 1);
  CHECK(num_warnings("only_list([2])", {.ops = {in_cross_attention}}) == 0);
  CHECK(num_warnings("only_list([1])", {.ops = {in_cross_attention}}) == 1);
}

TEST_CASE("sac_split inherits the expected scopes and ops of its parts") {
  CHECK(warnings_of("sac_split(attn: sac_modalities(aten.mm,aten.max), ffn: full)", toy_llama()) ==
        Warnings{"sac_split(attn: sac_modalities(aten.mm,aten.max), ffn: full): nothing in its "
                 "regions matches aten::max.default"});
}

}  // namespace
}  // namespace rematch::testing
