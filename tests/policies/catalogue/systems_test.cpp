// Tests that each mode of a training system resolves to the equivalent policy, or is rejected with
// the reason.
#include "policies/catalogue/systems.h"
#include "policies/base/rejected.h"

#include <algorithm>
#include <set>

#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

struct SpellingRow {
  const char* spelling;
  const char* policy;
  bool early_stop = true;
};

// Returns whether `expected` describes a pitfall. If not, `expected` names scopes or ops that a
// model should have.
bool is_pitfall(const Policy::Expectation& expected) {
  return expected.scopes.empty() && expected.ops.empty();
}

TEST_CASE(
    "every mode belongs to a system, and the table says where the system's source and settings "
    "are") {
  for (const SystemEntry& entry : system_entries()) {
    CAPTURE(entry.spelling);
    const auto has_name = [&](const TrainingSystem& system) { return system.name == entry.system; };
    REQUIRE(std::ranges::count_if(training_systems(), has_name) == 1);
    const TrainingSystem& system = *std::ranges::find_if(training_systems(), has_name);
    CHECK_FALSE(system.source.empty());
    CHECK_FALSE(system.where.empty());
  }
}

// torchtitan disables early stop, except in its graph trainer. Megatron-LM and DeepSpeed use
// reentrant checkpointing, which has no early stop. All other systems enable early stop.
TEST_CASE(
    "a system's mode resolves to the equivalent policy, and has early stop only if the system has "
    "it") {
  const std::vector<SpellingRow> rows = {
      {"fastvideo:block_skip", "nth_first(1)"},
      {"fastvideo(type=block_skip,n_layer=3)", "nth_first(3)"},
      {"fastvideo:attn_only", "attn_only"},
      {"fastvideo:ops", "ops_root"},
      {"titan:selective", "sac_titan", false},
      {"titan:full", "full_nostop", false},
      {"titan(selective_ac_option=2)", "nth_last(2)", false},
      {"titan(selective_ac_option=0)", "full", false},
      {"titan:selective_2025(llama4)", "sac_titan_2025(llama4)", false},
      {"titan(memory_policy=default)", "sac_titan_all"},
      {"titan(memory_policy=eager)", "sac_titan"},
      {"titan(memory_policy=full)", "full_except()"},
      {"torchtune(ac_mode=selective,ac_option=2)", "nth_last(2)"},
      {"torchtune(ac_option=2, ac_mode=selective)", "nth_last(2)"},
      {"torchtune(ac_mode=full)", "full"},
      {"torchtune(ac_mode=none)", "none"},
      {"torchtune(ac_mode=none,ac_option=2)", "none"},
      {"torchtune(ac_mode=full,ac_option=2)", "full"},
      {"torchtune(enable_activation_checkpointing=True)", "full"},
      {"torchtune(enable_activation_checkpointing=False)", "none"},
      {"modalities:selective_layer(ac_freq=2)", "nth_last(2)"},
      {"modalities:full_activation_checkpointing", "full"},
      {"modalities:full_activation_checkpointing(layers_fqn=transformer.h)", "full"},
      {"modalities:selective_layer_activation_checkpointing(ac_freq=2)", "nth_last(2)"},
      {"modalities:selective_op_activation_checkpointing(save_ops_keys=[ops.aten.mm.default])",
       "sac_modalities(aten.mm)"},
      {"modalities:selective_op(save_ops_keys=ops.aten.mm.default)", "sac_modalities(aten.mm)"},
      {"modalities(ac_variant=full_activation_checkpointing,layers_fqn=transformer.h)", "full"},
      {"modalities(layers_fqn=transformer.h,ac_variant=selective_layer_activation_checkpointing,"
       "ac_freq=2)",
       "nth_last(2)"},
      {"modalities(ac_variant=selective_op_activation_checkpointing,layers_fqn=transformer.h,"
       "save_ops_keys=[ops.aten.mm.default,ops.aten.max.default])",
       "sac_modalities(aten.mm,aten.max)"},
      {"modalities:selective_op(ops.aten.mm.default,ops.aten.max.default)",
       "sac_modalities(aten.mm,aten.max)"},
      {"diffusers(skip_layers=[0,2])", "skip_list([0,2])"},
      {"diffusers(skip_every=2)", "skip_nth(2)"},
      {"megatron(recompute_modules=[core_attn])", "recompute_modules([core_attn])", false},
      {"megatron(recompute_granularity=selective)", "recompute_modules([core_attn])", false},
      {"megatron(recompute_granularity=selective,recompute_modules=[mlp])",
       "recompute_modules([mlp])", false},
      {"megatron:recompute_activations", "recompute_modules([core_attn])", false},
      {"megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=2)",
       "first_n(2)", false},
      {"megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=2)",
       "segments(2)", false},
      {"maxtext:minimal_with_context", "remat_minimal_with_context"},
      {"deepspeed:checkpoint", "full_reentrant", false},
      {"deepspeed(activation_checkpoint_interval=2)", "segments(2)", false},
      {"maxtext:custom(moe_mlpwi_0=device,moe_mlpwi_1=device,moe_mlpwo=offload)",
       "remat_custom(moe_mlpwi_0=device,moe_mlpwi_1=device,moe_mlpwo=offload)"},
      {"titan:FullActivationRematConfig", "remat_titan(save=[])", false},
      {"titan:SelectiveActivationRematConfig",
       "remat_titan(save=[*],recompute=[*routed_experts.w13.*])", false},
      {"titan:ActivationRematConfig(save_regions=[\"attention.*\"],recompute_regions=['*.wo.*'])",
       "remat_titan(save=[attention.*],recompute=[*.wo.*])", false},
      {"titan:RegionAC(save_regions=[attention.wo.linear])",
       "remat_titan(save=[attention.wo.linear])", false},
      {"megatron(offload_modules=[qkv_linear])", "offload_modules([qkv_linear])"},
      {"megatron(offload_modules=[fused_group_mlp])", "offload_modules([fused_group_mlp])"},
      {"huggingface:gradient_checkpointing", "full"},
      {"huggingface:activation_checkpointing", "full"},
      {"huggingface(offload=True)", "offload_inputs(full)"},
      {"huggingface(every_n_layers=2)", "nth_first(2)"},
      {"huggingface(offload=true,every_n_layers=2)", "offload_inputs(nth_first(2))"},
      {"axolotl(gradient_checkpointing=true,selective_checkpointing=true)", "ops_block"},
      {"axolotl(selective_checkpointing.offload=true,gradient_checkpointing=true)",
       "offload_saved(ops_block)"},
      {"axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)",
       "offload_inputs(full)"},
      {"automodel:full", "full"},
      {"automodel:selective", "sac_grouped"}};
  for (const SpellingRow& row : rows) {
    CAPTURE(row.spelling);
    Policy ours = policy_of(row.policy);
    Policy theirs = policy_of(row.spelling);
    std::erase_if(theirs.expectations, is_pitfall);
    CHECK(theirs.name == row.spelling);
    CHECK(theirs.early_stop == row.early_stop);
    ours.name = theirs.name;
    ours.early_stop = theirs.early_stop;
    CHECK(theirs == ours);
  }
}

TEST_CASE("a list in a mode is read in the syntax of the system's own configuration") {
  const auto same = [](const char* theirs, const char* ours) {
    CAPTURE(theirs);
    Policy policy = policy_of(theirs);
    policy.name = policy_of(ours).name;
    return policy == policy_of(ours);
  };
  CHECK(
      same("sac_titan_excluding([\"moe.router.gate\"])", "sac_titan_excluding([moe.router.gate])"));
  CHECK(policy_of("titan:selective(force_recompute_mm_shapes_by_fqns=[\"moe.router.gate\"])")
            .alternate->exclude ==
        policy_of("sac_titan_excluding([moe.router.gate])").alternate->exclude);
  CHECK(same("full_except(['*.attention::aten.mm.default'])",
             "full_except(*.attention::aten::mm.default)"));
  CHECK(policy_of("titan(memory_policy=full,full_recompute_save_ops=*.attention::aten.mm.default)")
            .save[0] == Selector{"*.attention", "aten::mm.default", std::nullopt});
  CHECK(
      same("modalities:selective_op([\"torch.ops.aten.mm.default\"])", "sac_modalities(aten.mm)"));
  CHECK(policy_of("megatron(recompute_modules=[\"mlp\"])").regions.patterns ==
        std::vector<std::string>{"ffn"});
}

TEST_CASE("every mode in the table of systems parses to a policy, or is rejected with a reason") {
  for (const SystemEntry& entry : system_entries()) {
    CAPTURE(entry.spelling);
    CHECK_FALSE(entry.description.empty());
    const std::string text = typed(entry);
    CAPTURE(text);
    if (entry.stands_for.empty()) {
      CHECK(rejection_of(text) == text + " is not supported: " + std::string(entry.pitfall.text));
    } else {
      CHECK(policy_of(text).name == text);
    }
  }
}

TEST_CASE("the table has modes of all systems, and no mode occurs twice") {
  std::set<std::string_view> systems;
  std::set<std::string_view> spellings;
  for (const SystemEntry& entry : system_entries()) {
    systems.insert(entry.system);
    CHECK(spellings.insert(entry.spelling).second);
  }
  for (const char* system : {"FastVideo", "torchtitan", "torchtune", "modalities", "diffusers",
                             "Megatron-LM", "MaxText", "PyTorch", "axolotl"}) {
    CAPTURE(system);
    CHECK(systems.contains(system));
  }
}

TEST_CASE("a mode of another system uses that system's schedule") {
  for (const SystemEntry& entry : system_entries()) {
    CAPTURE(entry.spelling);
    CHECK(is_mode_of_system(entry.spelling));
    CHECK(usual_schedule(entry.spelling) == Schedule::kWholeRegion);
  }
  for (const char* mode :
       {"remat_minimal", "remat_custom(out_proj=device)", "remat(save=[ffn])",
        "remat_titan(save=[])", "offload_inputs(remat_minimal)", "modalities:full_activation"}) {
    CAPTURE(mode);
    CHECK(usual_schedule(mode) == Schedule::kWholeRegion);
    CHECK(schedule_note(mode, Schedule::kOnDemand) == "this engine only");
    CHECK(schedule_note(mode, Schedule::kWholeRegion).empty());
  }
  for (const char* own : {"none", "full", "attn_only", "offload_inputs(full)", "sac_titan",
                          "policies/mine.json", "point 3", "simple", ""}) {
    CAPTURE(own);
    CHECK(usual_schedule(own) == Schedule::kOnDemand);
    CHECK(schedule_note(own, Schedule::kOnDemand).empty());
  }
}

TEST_CASE("the error for a misspelled word in a mode suggests the corrected mode") {
  CHECK_THAT(rejection_of("titan:fulll"), Catch::Contains("did you mean 'titan:full'?"));
  CHECK_THAT(rejection_of("titn:full"), Catch::Contains("did you mean 'titan:full'?"));
  CHECK_THAT(rejection_of("torchtune(ac_mode=selective,ac_optoin=2)"),
             Catch::Contains("did you mean 'torchtune(ac_mode=selective,ac_option=2)'?"));
  CHECK_THAT(rejection_of("torchtitan:fulll"),
             Catch::Contains("torchtitan has no mode") &&
                 Catch::Contains("did you mean 'torchtitan:full'?"));
  CHECK_THAT(
      rejection_of("torchtune(enable=false,ac_mode=selectve,ac_option=2)"),
      Catch::Contains("did you mean 'torchtune(enable=false,ac_mode=selective,ac_option=2)'?"));
  for (const char* other :
       {"titan:flex", "modalities(ac_variant=selective_op_activation_checkpointing)",
        "modalities(ac_variant=selective_op)", "torchtune(enable=maybe)",
        "torchtune(enable=false,ac_mode=selective)"}) {
    CAPTURE(other);
    CHECK_THAT(rejection_of(other), !Catch::Contains("did you mean"));
  }
}

TEST_CASE("names of systems and values of settings have aliases") {
  for (const auto& [other, mode] : std::initializer_list<std::pair<const char*, const char*>>{
           {"torchtitan:full", "titan:full"},
           {"titan(mode=full)", "titan:full"},
           {"titan(mode=selective,selective_ac_option=op)", "titan(selective_ac_option=op)"},
           {"torchtitan(mode=selective,selective_ac_option=2)", "titan(selective_ac_option=2)"},
           {"transformers:gradient_checkpointing", "huggingface:gradient_checkpointing"},
           {"fastvideo(type=attn_only)", "fastvideo:attn_only"},
           {"fastvideo(type=None)", "fastvideo:none"},
           {"torchtune(enable=True)", "torchtune(enable_activation_checkpointing=true)"},
           {"torchtune(enable = false)", "torchtune(enable_activation_checkpointing=false)"},
           {"torchtune(enable=false,ac_mode=full)", "torchtune(ac_mode=full)"},
           {"torchtune(enable=false,ac_mode=None)", "torchtune(ac_mode=none)"},
           {"torchtune(enable=true,ac_option=2)", "torchtune(ac_mode=full,ac_option=2)"},
           {"torchtune(ac_mode='selective',ac_option=\"2\")",
            "torchtune(ac_mode=selective,ac_option=2)"},
           {"torchtitan(ac_mode=None)", "titan:none"},
           {"torchtitan(mode=\"full\")", "titan:full"},
           {"modalities(ac_variant=full)", "modalities:full"},
           {"modalities(ac_variant=selective_op,save_ops_keys=[ops.aten.mm.default])",
            "modalities:selective_op(ops.aten.mm.default)"},
           {"modalities(ac_freq=2,ac_variant='selective_layer')",
            "modalities:selective_layer(ac_freq=2)"},
           {"modalities:None", "none"},
           {"diffusers:None", "none"},
           {"megatron:None", "none"},
           {"transformers:None", "none"},
           {"transformers(gradient_checkpointing=False)", "none"},
           {"transformers(gradient_checkpointing=True)", "huggingface:gradient_checkpointing"},
           {"axolotl(gradient_checkpointing=False)", "none"},
           {"torchtune(ac_mode=None)", "torchtune(ac_mode=none)"}}) {
    CAPTURE(other);
    Policy policy = policy_of(other);
    CHECK(policy.name == other);
    CHECK(is_mode_of_system(other));
    policy.name = mode;
    CHECK(policy == policy_of(mode));
  }
  CHECK_THAT(rejection_of(
                 "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=op)"),
             Catch::Contains("ValueError"));
  for (const char* op : {"torchtune(enable=false,ac_mode=selective,ac_option=op)",
                         "torchtune(ac_mode=selective,ac_option='op')"}) {
    CAPTURE(op);
    CHECK(rejection_of(op).starts_with(std::string(op) + " is not supported: torchtune fails"));
  }
  CHECK_THAT(rejection_of("modalities(ac_variant=selective_op)"),
             Catch::Contains("the mode needs save_ops_keys"));
  CHECK_THAT(rejection_of("modalities(ac_variant=selective_layer)"),
             Catch::Contains("give ac_freq=N"));
  CHECK_THAT(rejection_of("sac_split(attn: full, moe: full)"),
             Catch::Contains("ffn also covers experts"));
}

// Megatron-LM checks the list of modules when it starts.
TEST_CASE("a list of offloaded modules that Megatron-LM refuses is refused here") {
  CHECK(rejection_of("megatron(offload_modules=[attn_norm,attn_proj])") ==
        "megatron(offload_modules=[attn_norm,attn_proj]) is refused: attn_proj needs core_attn, "
        "because the backward of core_attn reads the input of attn_proj");
  CHECK(rejection_of("megatron(offload_modules=[layer_input])") ==
        "megatron(offload_modules=[layer_input]) is refused: Megatron-LM has no module "
        "layer_input; attn_norm has the same input");
  policy_of("megatron(offload_modules=[core_attn,attn_proj])");
  policy_of("offload_modules([attn_proj,layer_input])");
}

TEST_CASE("the error for a mode without an equivalent policy says what to use instead") {
  CHECK(is_refused_mode("titan:SelectiveAC"));
  CHECK(is_refused_mode("modalities(ac_variant=selective_op)"));
  CHECK_FALSE(is_refused_mode("titan:full"));
  CHECK_FALSE(is_refused_mode("titan:fulll"));
  std::vector<RefusedPolicy> refused;
  const auto parsed = parse_policies("none,titan:SelectiveAC,full", refused);
  REQUIRE(std::holds_alternative<std::vector<Policy>>(parsed));
  CHECK(std::get<std::vector<Policy>>(parsed).size() == 2);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].name == "titan:SelectiveAC");
  CHECK_THAT(refused[0].reason, Catch::Contains("write titan:selective for the listed ops"));
  CHECK(std::holds_alternative<Rejected>(parse_policies("none,titan:fulll", refused)));
}

TEST_CASE("the error for a wrong setting explains the system's pitfall") {
  CHECK_THAT(rejection_of("torchtune(ac_mode=selectiv)"), Catch::Contains("silently"));
  CHECK_THAT(rejection_of("torchtune(enable_activation_checkpointing=true,ac_mode=full)"),
             Catch::Contains("checkpoints nothing; set only one of the two switches"));
  CHECK_THAT(
      rejection_of("modalities:selective_layer(ac_freq=0)"),
      Catch::Contains("stands for nth_last(0): N of nth_last(N) must be a whole number from 1"));
  CHECK_THAT(rejection_of("modalities:selective_op(ops.aten.addmm.default)"),
             Catch::Contains("unknown key"));
  CHECK_THAT(rejection_of("modalities(ac_variant=full,layers_fqn=)"),
             Catch::Contains("modalities has no mode"));
  CHECK_THAT(rejection_of("modalities:selective_layer_activation_checkpointing"),
             Catch::Contains("give ac_freq=N with N >= 1"));
  CHECK_THAT(
      rejection_of("titan:SelectiveAC"),
      Catch::Contains("titan:selective for the listed ops, or titan:SelectiveActivationRemat"));
  CHECK_THAT(rejection_of("titan:RegionAC(save_regions=[atention.*])"),
             Catch::Contains("no region matches 'atention.*'"));
  CHECK_THAT(
      rejection_of("megatron(recompute_modules=[mlp,gdn_norm_out])"),
      Catch::Contains("gdn_norm_out is a module of gated delta nets, which no model here has"));
  CHECK_THAT(rejection_of("offload_modules([gdp_qkv])"), Catch::Contains("gated delta products"));
  CHECK_THAT(rejection_of("megatron(offload_modules=[fused_group_mlp,moe_act])"),
             Catch::Contains("already includes expert_fc1 and moe_act"));
  CHECK_THAT(rejection_of("maxtext:custom(query_wa_proj=device)"),
             Catch::Contains("no model here has a tensor query_wa_proj"));
  CHECK_THAT(rejection_of("maxtext:custom(out_proj=host)"), Catch::Contains("NAME=offload"));
  CHECK_THAT(rejection_of("maxtext:custom(outproj=device)"), Catch::Contains("did you mean"));
  CHECK_THAT(rejection_of("titan:layers"), Catch::Contains("known: titan:none, titan:full"));
  // N exceeds the number of layers. torchtune itself then silently checkpoints nothing.
  const auto resolved = resolve(policy_of("torchtune(ac_mode=selective,ac_option=9)"), toy_llama());
  REQUIRE(std::holds_alternative<Rejected>(resolved));
  CHECK_THAT(std::get<Rejected>(resolved).message, Catch::Contains("toy_llama has 4 layers"));
}

}  // namespace
}  // namespace rematch::testing
