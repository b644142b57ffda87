// Tests which matmuls are kept by the policies that keep every second matmul in call order.
#include <set>

#include "policies/base/rejected.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

// The matmuls are wq wk wv wo w1 w3 w2. Counting starts at 1, and odd matmuls are kept.
TEST_CASE("the first, third, fifth and seventh of a Llama block's matmuls are kept") {
  const Trace toy = toy_llama();
  for (const char* policy : {"sac_titan", "sac_titan_2024", "sac_titan_2025(llama3)",
                             "sac_modalities(aten.mm)", "sac_grouped"}) {
    CAPTURE(policy);
    CHECK(decisions(plan_of(policy, toy).types.at(0), kMm) == "SrSrSrS");
  }
  CHECK(decisions(plan_of("sac_titan_even", toy).types.at(0), kMm) == "rSrSrSr");
  CHECK(decisions(plan_of("sac_titan_all", toy).types.at(0), kMm) == "SSSSSSS");
}

TEST_CASE(
    "matmuls are counted from 1 in each region, and policy ops_root has one region for the whole "
    "model") {
  const Plan plan = plan_of("ops_root", toy_llama({.layers = 2}));
  REQUIRE(plan.types.size() == 1);
  CHECK(decisions(plan.types[0], kMm).substr(0, 14) == "SrSrSrSrSrSrSr");
}

TEST_CASE(
    "lists with the attention class keep fused attention, and lists of literal op names do not") {
  const Trace toy = toy_llama();
  constexpr std::string_view kAttention = "rematch::attention";
  CHECK(decisions(plan_of("sac_titan", toy).types.at(0), kAttention) == "S");
  CHECK(decisions(
            plan_of("sac_modalities(aten._scaled_dot_product_flash_attention)", toy).types.at(0),
            kAttention) == "S");
  CHECK(decisions(plan_of("sac_modalities(aten.mm)", toy).types.at(0), kAttention) == "r");
  CHECK(decisions(plan_of("ops_root", toy).types.at(0), kAttention).substr(0, 2) == "rr");
}

// torchtitan's current list contains aten::addmm, but only aten::mm is counted, so every addmm is
// kept. The older lists contain only aten::mm.
TEST_CASE(
    "in a model of biased linears, torchtitan's list keeps all matmuls, and the older lists keep "
    "none") {
  const Trace biased = toy_biased();
  CHECK(decisions(plan_of("sac_titan", biased).types.at(0), "aten::addmm") == "SSSSSSS");
  CHECK(decisions(plan_of("sac_titan_2024", biased).types.at(0), "aten::addmm") == "rrrrrrr");
  const auto resolved = resolve(policy_of("sac_modalities(aten.mm)"), biased);
  REQUIRE(std::holds_alternative<Rejected>(resolved));
  CHECK_THAT(std::get<Rejected>(resolved).message, Catch::Contains("aten::addmm"));
}

// Builds a chain of the given ops. The models of this project do not run most of these ops.
Trace chain_of(const std::vector<std::string>& names) {
  TraceBuilder builder("listed");
  ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    for (const std::string& name : names) x = builder.call(name, {x}, {8, 8}, {{0}, {}});
  }
  return builder.finish();
}

// Returns the ops of a chain that the policy keeps.
std::vector<std::string> kept_of(std::string_view policy, const std::vector<std::string>& names) {
  const Plan plan = plan_of(policy, chain_of(names));
  std::vector<std::string> kept;
  for (const PlannedOp& op : plan.types.at(0).ops) {
    if (op.treatment == Treatment::kSave) kept.push_back(op.name);
  }
  return kept;
}

std::set<std::string> ops_of(const std::vector<Selector>& selectors) {
  std::set<std::string> names;
  for (const Selector& selector : selectors) names.insert(selector.op);
  return names;
}

// Checks the save list itself, because a plan would not show every entry: attention is matched by
// class, and collectives are always kept.
TEST_CASE("sac_titan's save list has exactly the ops that torchtitan's own list names") {
  const std::vector<std::string> kept = {"aten::addmm",
                                         "aten::bmm",
                                         "aten::_scaled_mm",
                                         "aten::convolution",
                                         "aten::convolution_backward",
                                         "aten::upsample_bilinear2d",
                                         "aten::_scaled_dot_product_flash_attention",
                                         "aten::_scaled_dot_product_efficient_attention",
                                         "aten::_scaled_dot_product_cudnn_attention",
                                         "aten::_scaled_dot_product_attention_math",
                                         "aten::_scaled_dot_product_fused_attention_overrideable",
                                         "aten::_flash_attention_forward",
                                         "aten::_efficient_attention_forward",
                                         "aten::max",
                                         "aten::topk",
                                         "higher_order::flex_attention",
                                         "higher_order::inductor_compiled_code",
                                         "torch_attn::_varlen_attn",
                                         "_c10d_functional::reduce_scatter_tensor",
                                         "_c10d_functional::all_to_all_single",
                                         "deepep::dispatch",
                                         "deepep::combine",
                                         "hybridep::dispatch",
                                         "hybridep::combine"};
  const std::vector<std::string> left = {"aten::max.dim", "aten::_grouped_mm", "aten::silu",
                                         "aten::_to_copy"};
  std::vector<std::string> all = kept;
  all.insert(all.end(), left.begin(), left.end());
  for (const char* policy : {"sac_titan", "sac_titan_all", "sac_titan_even"}) {
    CAPTURE(policy);
    CHECK(kept_of(policy, all) == kept);
  }
  std::set<std::string> listed(kept.begin(), kept.end());
  listed.erase("aten::max");
  listed.insert("aten::max.default");
  CHECK(ops_of(policy_of("sac_titan").save) == listed);
  CHECK(ops_of(policy_of("sac_titan_even").save) == listed);
  listed.insert({"aten::mm", "aten::linear"});
  CHECK(ops_of(policy_of("sac_titan_all").save) == listed);
}

TEST_CASE("the list of each torchtitan model contains the shared ops and the model's own ops") {
  const std::set<std::string> common = {"aten::_scaled_dot_product_flash_attention",
                                        "aten::_scaled_dot_product_efficient_attention",
                                        "aten::_scaled_dot_product_cudnn_attention",
                                        "aten::_scaled_dot_product_attention_math",
                                        "aten::_scaled_dot_product_fused_attention_overrideable",
                                        "higher_order::flex_attention",
                                        "higher_order::inductor_compiled_code",
                                        "aten::max.default",
                                        "_c10d_functional::reduce_scatter_tensor"};
  const std::set<std::string> dense = {"torch_attn::_varlen_attn"};
  const std::set<std::string> experts = {"_c10d_functional::all_to_all_single", "deepep::dispatch",
                                         "deepep::combine", "hybridep::dispatch",
                                         "hybridep::combine"};
  for (const char* model : {"llama3", "qwen3", "llama4", "deepseek_v3", "gpt_oss"}) {
    CAPTURE(model);
    const bool is_dense = model == std::string_view("llama3") || model == std::string_view("qwen3");
    std::set<std::string> expected = common;
    for (const std::string& op : is_dense ? dense : experts) expected.insert(op);
    CHECK(ops_of(policy_of("sac_titan_2025(" + std::string(model) + ")").save) == expected);
  }
  CHECK(kept_of("sac_titan_2025(llama3)",
                {"aten::addmm", "higher_order::inductor_compiled_code", "aten::max.dim"}) ==
        std::vector<std::string>{"higher_order::inductor_compiled_code"});
}

// aten.max means the overload without a `dim` argument.
TEST_CASE("sac_modalities takes aten.max to mean the overload without a dimension") {
  CHECK(kept_of("sac_modalities(aten.max)", {"aten::max", "aten::max.dim"}) ==
        std::vector<std::string>{"aten::max"});
}

TEST_CASE("save_compute keeps every compute-intensive op of the list in PyTorch's partitioner") {
  const std::vector<std::string> kept = {"aten::mm",
                                         "aten::convolution",
                                         "aten::convolution_backward",
                                         "aten::bmm",
                                         "aten::addmm",
                                         "aten::_scaled_dot_product_flash_attention",
                                         "aten::_scaled_dot_product_efficient_attention",
                                         "aten::_flash_attention_forward",
                                         "aten::_efficient_attention_forward",
                                         "aten::upsample_bilinear2d",
                                         "aten::_scaled_mm"};
  std::vector<std::string> all = kept;
  all.insert(all.end(), {"aten::topk", "aten::max", "aten::_grouped_mm"});
  CHECK(kept_of("save_compute", all) == kept);
}

TEST_CASE("only torchtitan's current save lists turn early stop off") {
  const Trace toy = toy_llama();
  CHECK_FALSE(plan_of("sac_titan", toy).types.at(0).early_stop);
  CHECK(plan_of("sac_titan_2024", toy).types.at(0).early_stop);
  CHECK(plan_of("sac_modalities(aten.mm)", toy).types.at(0).early_stop);
}

// Rebuilds torchtitan's own test: gate 512 -> 512, wq 512 -> 512, output 512 -> 1024.
Trace titan_toy() {
  TraceBuilder builder("titan_toy");
  const auto linear = [&builder](ValueId x, std::int64_t out) {
    const ValueId weight = builder.parameter({512, out});
    return builder.call("aten::mm", {x, weight}, {512, out}, {{0, 1}, {}});
  };
  const ValueId input = builder.outside({512, 512}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    ValueId x = input;
    {
      const auto moe = builder.scope("moe");
      const auto router = builder.scope("router");
      const auto gate = builder.scope("gate");
      x = linear(x, 512);
    }
    {
      const auto attention = builder.scope("attention");
      x = linear(x, 512);
    }
    const auto output = builder.scope("output");
    linear(x, 1024);
  }
  return builder.finish();
}

// The expected ops are in column "recomputed" of torchtitan's own test. The gate is excluded by its
// name, and wq because its shape equals the gate's.
TEST_CASE("matmuls with the shape of an excluded matmul are also excluded") {
  const Plan plan = plan_of("sac_titan", titan_toy());
  CHECK(decisions(plan.types.at(0), kMm) == "rrS");
  Policy without = policy_of("sac_titan");
  without.alternate->exclude_same_shapes = false;
  const auto resolved = resolve(without, titan_toy());
  CHECK(decisions(std::get<Plan>(resolved).types.at(0), kMm) == "rSr");
}

// torchtitan excludes an mm or a linear if its module's name contains the given name.
TEST_CASE("an exclusion applies only to mm, and matches any part of the module path") {
  for (const char* policy : {"sac_titan_excluding([output])", "sac_titan_excluding([outp])"}) {
    CAPTURE(policy);
    CHECK(decisions(plan_of(policy, titan_toy()).types.at(0), kMm) == "Srr");
  }
  const Plan biased = plan_of("sac_titan_excluding([attention])", toy_biased());
  CHECK(decisions(biased.types.at(0), "aten::addmm") == "SSSSSSS");
}

TEST_CASE("an unknown key or model is rejected, and the error suggests a known name") {
  CHECK_THAT(rejection_of("sac_modalities(aten.mmm)"), Catch::Contains("did you mean 'aten.mm'"));
  CHECK_THAT(rejection_of("sac_modalities()"), Catch::Contains("needs at least one key"));
  CHECK_THAT(rejection_of("sac_titan_2025(lama3)"), Catch::Contains("did you mean 'llama3'"));
  CHECK(policy_of("sac_modalities(ops.aten.mm.default, ops.aten.max.default)").name ==
        "sac_modalities(aten.mm,aten.max)");
}

}  // namespace
}  // namespace rematch::testing
