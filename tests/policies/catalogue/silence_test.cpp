// Tests settings that a training system silently accepts although they are wrong, or that make it
// crash later. Here, such a setting gets a warning, or is rejected with a correction. Comments say
// what the system does.
#include "policies/base/rejected.h"
#include "policies/catalogue/warnings.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

struct RefusedRow {
  const char* typed;
  const char* part;  // a part of the error message
};

// Checks that the texts are rejected without a model.
void check_refused(const std::vector<RefusedRow>& rows) {
  for (const RefusedRow& row : rows) {
    CAPTURE(row.typed);
    CHECK_THAT(rejection_of(row.typed), Catch::Contains(row.part));
  }
}

std::string refusal_on(std::string_view text, const Trace& trace) {
  const auto resolved = resolve(policy_of(text), trace);
  const auto* rejected = std::get_if<Rejected>(&resolved);
  return rejected == nullptr ? "resolved" : rejected->message;
}

// Checks that the texts are valid, but are rejected for a model of four layers.
void check_refused_by_model(const std::vector<RefusedRow>& rows) {
  for (const RefusedRow& row : rows) {
    CAPTURE(row.typed);
    CHECK_THAT(refusal_on(row.typed, toy_llama()), Catch::Contains(row.part));
  }
}

bool is_warned(std::string_view text, const Trace& trace, const std::string& part) {
  const Policy policy = policy_of(text);
  const auto plan = resolve(policy, trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  for (const std::string& warning : plan_warnings(policy, std::get<Plan>(plan), trace)) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("the error for an unknown mode lists the system's modes") {
  check_refused(
      {{"titan:selectiv", "titan has no mode 'titan:selectiv'; did you mean"},
       {"titen:full", "unknown policy 'titen:full'; did you mean 'titan:full'?"},
       {"titan(memory_policy=fulll)", "titan has no mode"},
       // FastVideo's own error message allows FULL
       {"fastvideo:FULL", "did you mean 'fastvideo:full'?"},
       // In torchtune, this typo turns checkpointing off.
       {"torchtune(ac_mode=selectiv)", "silently checkpoints nothing"},
       {"torchtune(ac_mod=full)", "torchtune has no mode"},
       {"modalities:op", "known: modalities:none, modalities:full, modalities:selective_layer"},
       {"diffusers(skip=2)", "diffusers has no mode"},
       {"megatron(recompute_granularity=partial)", "megatron has no mode"},
       {"maxtext:minimal_with_contxt", "did you mean 'maxtext:minimal_with_context'?"},
       {"deepspeed(interval=2)", "deepspeed has no mode"},
       {"automodel:selectve", "automodel has no mode"}});
}

TEST_CASE("settings that contradict each other, or that need another setting, are rejected") {
  check_refused({
      // With these settings, torchtune checkpoints nothing.
      {"torchtune(enable_activation_checkpointing=true,ac_mode=full)",
       "checkpoints nothing; set only one of the two switches"},
      {"torchtune(enable_activation_checkpointing=true,ac_mode=selective,ac_option=2)",
       "checkpoints nothing; set only one of the two switches"},
      {"torchtune(ac_mode=selective)", "ac_option is missing"},
      {"torchtune(ac_mode=selective,ac_option=op)", "a ValueError"},
      {"torchtune(enable_activation_offloading=true)", "needs enable_activation_checkpointing"},
      {"titan(full_recompute_save_ops=matmul)", "needs memory_policy=full"},
      {"modalities:selective_op()", "needs save_ops_keys"},
      {"modalities:selective_op", "needs save_ops_keys"},
      // For this setting, the framework modalities raises an AttributeError that names a parameter
      // of another variant.
      {"modalities:selective_layer", "ac_freq=N with N >= 1"},
      {"modalities:selective_layer(ac_freq=0)", "a whole number from 1"},
      {"modalities:selective_layer(ac_freq=two)", "a whole number from 1"},
      {"megatron(recompute_granularity=full)", "megatron has no mode"},
      {"megatron(recompute_granularity=selective,recompute_num_layers=2)", "megatron has no mode"},
      {"deepspeed:contiguous_memory_optimization", "needs partition_activations"},
      // FastVideo parses this flag but does not use it.
      {"fastvideo(selective_checkpointing=0.5)", "never reads it"},
  });
}

TEST_CASE("an N below 1 is rejected, because systems divide by N or loop forever") {
  check_refused(
      {{"fastvideo(type=block_skip,n_layer=0)", "from 1"},   // FastVideo raises ZeroDivisionError
       {"fastvideo(type=block_skip,n_layer=-2)", "from 1"},  // FastVideo treats -2 as 2
       {"diffusers(every=0)", "from 1"},
       {"diffusers(every=-2)", "from 1"},
       {"titan(selective_ac_option=-1)", "from 1"},
       {"titan(selective_ac_option=half)", "from 1"},
       {"torchtune(ac_mode=selective,ac_option=-1)", "from 1"},
       {"megatron(recompute_granularity=full,recompute_method=uniform,"
        "recompute_num_layers=0)",
        "from 1"},  // Megatron-LM loops endlessly
       {"megatron(recompute_granularity=full,recompute_method=block,"
        "recompute_num_layers=-1)",
        "from 1"},
       {"deepspeed(activation_checkpoint_interval=-1)", "from 1"}});
  // These systems accept 0: torchtitan and torchtune then checkpoint every layer, and DeepSpeed
  // none.
  for (const char* all : {"titan(selective_ac_option=0)",
                          "torchtune(ac_mode=selective,"
                          "ac_option=0)"}) {
    CHECK(plan_of(all, toy_llama()).regions.size() == 4);
  }
  CHECK(plan_of("deepspeed(activation_checkpoint_interval=0)", toy_llama()).regions.empty());
}

TEST_CASE(
    "an N beyond the number of layers is rejected, because systems silently accept such an N") {
  check_refused_by_model(
      {{"titan(selective_ac_option=5)", "use 1 to 4"},  // torchtitan checkpoints no block
       {"torchtune(ac_mode=selective,ac_option=5)",
        "use 1 to 4"},                                           // torchtune checkpoints no block
       {"modalities:selective_layer(ac_freq=5)", "use 1 to 4"},  // modalities checkpoints no block
       {"fastvideo(type=block_skip,n_layer=5)", "use 1 to 4"},   // FastVideo checkpoints block 0
       {"diffusers(every=5)", "use 1 to 4"},                     // diffusers checkpoints block 0
       // diffusers checkpoints all except block 0
       {"diffusers(skip_every=5)", "use 1 to 4"},
       {"megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=5)",
        "use 1 to 4"},  // Megatron-LM checkpoints all blocks
       {"megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=5)",
        "use 1 to 4"},  // Megatron-LM makes a single segment
       {"deepspeed(activation_checkpoint_interval=5)", "use 1 to 4"}});
}

TEST_CASE("names without a match are rejected, because systems silently ignore them") {
  check_refused_by_model({{"diffusers(skip_layers=[0,4])", "layer 4 does not exist"},
                          {"megatron(recompute_modules=[moe])", "no scope in a chosen block"},
                          {"megatron(recompute_modules=[moe_act])", "toy_llama has no moe_act"},
                          {"modalities:selective_op(ops.aten.max.default)", "nothing in its"}});
  check_refused({
      {"megatron(recompute_modules=[moe_layer])",
       "unknown module 'moe_layer'"},  // value that Megatron-LM itself recommends
      // modalities raises KeyError in forward
      {"modalities:selective_op(ops.aten.addmm.default)", "unknown key"},
      {"titan:selective_2025(llama5)", "unknown model"},
      // In PyTorch, a policy function must compare ops with an overload. A comparison with an op
      // packet such as aten.mm is always false.
      {"full_except(aten.mm)", "selector 'aten.mm'"},
      {"titan(memory_policy=full,full_recompute_save_ops=atn_fwd)", "selector 'atn_fwd'"},
  });
  const Trace toy = toy_llama();
  CHECK(is_warned("titan:selective(force_recompute_mm_shapes_by_fqns=[moe.router.gaet])", toy,
                  "nothing in its regions matches *moe.router.gaet*::aten::mm"));
  CHECK(is_warned("full_except(*.fnn::matmul,attention_forward)", toy, "*.fnn::matmul"));
  CHECK(is_warned("megatron(recompute_modules=[mlp,moe])", toy, "toy_llama has no moe"));
}

TEST_CASE("a model without layers is rejected, because systems silently accept such a model") {
  TraceBuilder builder("flat");
  const ValueId x = builder.outside({4, 4}, "float32", /*needs_grad=*/true);
  {
    const auto scope = builder.scope("body");
    builder.call("aten::silu", {x}, {4, 4}, {{0}, {}});
  }
  const Trace flat = builder.finish();
  for (const char* policy :
       {"fastvideo:full", "fastvideo:block_skip", "fastvideo:attn_only", "titan:full",
        "titan:selective", "modalities:full", "diffusers:enable_gradient_checkpointing"}) {
    CAPTURE(policy);
    CHECK_THAT(refusal_on(policy, flat), Catch::Contains("has no layers"));
  }
}

// These policies list aten::mm, but linears with a bias run aten::addmm.
TEST_CASE("an op list that matches no op is rejected or gives a warning") {
  const Trace biased = toy_biased();
  for (const char* policy : {"fastvideo:ops", "modalities:selective_op(ops.aten.mm.default)"}) {
    CAPTURE(policy);
    CHECK_THAT(refusal_on(policy, biased),
               Catch::Contains("use the name or class of an op in its regions: aten::addmm"));
  }
  CHECK(is_warned("titan:selective_2024", biased, "the matmuls in its regions are aten::addmm"));
}

TEST_CASE("a mode with a misleading name gives a warning that suggests the intended mode") {
  const Trace toy = toy_llama();
  CHECK(is_warned("fastvideo:ops", toy, "ops_block does what was intended"));
  CHECK(is_warned("torchtune(ac_mode=full,ac_option=2)", toy,
                  "ac_option is ignored, as in torchtune"));
}

// A warning about restoring the random number generator matters only if the model draws random
// numbers.
TEST_CASE("a model without random draws gives no warning about the random number generator") {
  Trace toy = toy_llama();
  CHECK_FALSE(is_warned("fastvideo:full", toy, "generator"));
  toy.ops[5_op].draws_random = true;
  CHECK(is_warned("fastvideo:full", toy, "does not restore the generator"));
}

TEST_CASE("a policy that is equivalent to full or none on a model is rejected or gives a warning") {
  const Trace toy = toy_llama();
  CHECK(is_warned("fastvideo:block_skip", toy, "so the mode equals full"));
  CHECK(is_warned("titan:flux", toy, "recomputes whole blocks"));
  CHECK_THAT(refusal_on("only_list([0,1,2,3])", toy), Catch::Contains("the same as full"));
  CHECK_THAT(refusal_on("skip_list([0,1,2,3])", toy), Catch::Contains("the same as none"));
}

// With N = 2, one system selects layers 1 and 3, and another selects 0 and 2. Only 1 and 3 include
// the last layer.
TEST_CASE(
    "a mode for every N-th layer chooses its system's layers, and warns if the last layer is "
    "checkpointed") {
  const Trace toy = toy_llama();
  const auto layers = [&toy](const char* policy) {
    std::vector<int> list;
    for (const PlannedRegion& region : plan_of(policy, toy).regions) {
      list.insert(list.end(), region.layers.begin(), region.layers.end());
    }
    return list;
  };
  for (const char* policy :
       {"titan(selective_ac_option=2)", "torchtune(ac_mode=selective,ac_option=2)",
        "modalities:selective_layer(ac_freq=2)"}) {
    CAPTURE(policy);
    CHECK(layers(policy) == std::vector<int>{1, 3});
    CHECK(is_warned(policy, toy, "saves nothing at the start of backward"));
    // the layer counter is never reset, so counting may start elsewhere in a second model
    CHECK(is_warned(policy, toy, "counter"));
  }
  for (const char* policy : {"fastvideo(type=block_skip,n_layer=2)", "diffusers(every=2)",
                             "huggingface(every_n_layers=2)"}) {
    CAPTURE(policy);
    CHECK(layers(policy) == std::vector<int>{0, 2});
    CHECK_FALSE(is_warned(policy, toy, "saves nothing at the start of backward"));
  }
}

TEST_CASE("unsupported settings are rejected and never replaced by similar settings") {
  check_refused(
      {{"titan:memory_budget", "a compiler's graph"},
       {"titan(mode=memory_budget)", "a compiler's graph"},
       {"titan(memory_policy=auto_perf_maxing)", "a search, not a policy"},
       {"maxtext:custom", "device, offload or remat for each tensor"},
       {"maxtext(remat_policy_for_vit=minimal)", "never reads it"},
       {"megatron(recompute_modules=[mhc])", "no model of rematch has hyper connections"},
       {"axolotl(selective_checkpointing=true)", "needs gradient_checkpointing=true"},
       {"deepspeed:partition_activations", "which rematch does not support"},
       {"megatron:distribute_saved_activations", "which rematch does not support"},
       {"diffusers(gradient_checkpointing_func=mine)", "policy file"},
       {"veomni(recompute_last_n_layers=2,selective_n_layers=1)", "one rule for all layers"}});
}

}  // namespace
}  // namespace rematch::testing
