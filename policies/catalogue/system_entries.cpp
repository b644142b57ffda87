// Lists the activation checkpointing modes that training systems offer. The list is taken from the
// systems' public sources as of mid 2026.
#include "policies/catalogue/systems.h"

#include <algorithm>

namespace rematch {
namespace {

using Concern = Policy::Concern;

constexpr Pitfall in_list(const char* text) {
  return {text, Concern::kEveryModel, PitfallShown::kInList};
}

constexpr Pitfall kNoGenerator(
    "the mode does not restore the generator, so recompute draws another dropout mask; rematch "
    "replays the draws",
    Concern::kDraws);
constexpr const char* kCounter =
    "the mode's layer counter is never reset, so a second model in the process starts in the "
    "middle of a group of N layers; an N larger than the number of layers silently checkpoints "
    "nothing";
constexpr const char* kSharedCounter =
    "the mode's layer counter is an attribute of a function in torch, so all models of the process "
    "share one counter";
constexpr Pitfall kKeys = in_list(
    "an unknown key causes an error only in the first forward; in layers with biases the key for "
    "mm keeps nothing");
constexpr Pitfall kMmList(
    "the mode lists aten::mm, but biased linears are aten::addmm, so it keeps no biased linear",
    Concern::kBiases);

constexpr Pitfall kRegionsOnly = in_list(
    "the mode also offloads tensors of 1 KiB or more that autograd saves outside the layers; "
    "rematch keeps these tensors on the device");
constexpr Pitfall kBytesNotGroups = in_list(
    "rematch has no setting for the share of tensors to offload or for their minimum size; write a "
    "policy file");
constexpr const char* kSelectiveAc =
    "the name has two meanings: torchtitan saved listed ops before it moved to torch_remat, and "
    "has saved regions since then; write titan:selective for the listed ops, or "
    "titan:SelectiveActivationRematConfig for the regions";
constexpr Pitfall kRegionsOfTitan = in_list(
    "torchtitan ignores a pattern that matches no region, but rematch rejects it; rematch does not "
    "know the regions of latent attention");
constexpr const char* kNoGatedDelta =
    "the module belongs to gated delta layers, which no model of rematch has";
constexpr Pitfall kComputeStream = in_list(
    "the mode copies on the compute stream, and also copies the last layer's input; rematch uses a "
    "separate stream, and keeps that input on the device");
constexpr Pitfall kLayersOfModel =
    in_list("the mode counts layers over the whole model; rematch counts them in each block list");
constexpr const char* kASearch =
    "choosing what to save within a budget is a search, not a policy; use rematch search";
constexpr const char* kOneProcess =
    "the mode shards kept tensors over ranks, which rematch does not support";

constexpr const char* kWholeModel =
    "a region over the whole model has the same peak as policy none, and the exact op names miss "
    "biased linears; ops_block does what was intended";
constexpr const char* kNameRule =
    "the mode's rule for names misses aten::_flash_attention_forward and block-sparse attention; "
    "rematch keeps every fused attention op";

// Checks a list of offload_modules. Source: megatron/core/transformer/transformer_config.py of
// d98e8a64dd.
std::string_view refusal_of_megatron(const std::vector<std::string_view>& words) {
  const auto has = [&words](std::string_view name) {
    return std::find(words.begin(), words.end(), name) != words.end();
  };
  if (has("layer_input")) {
    return "Megatron-LM has no module layer_input; attn_norm has the same input";
  }
  if (has("attn_proj") && !has("core_attn")) {
    return "attn_proj needs core_attn, because the backward of core_attn reads the input of "
           "attn_proj";
  }
  return "";
}

constexpr SystemEntry kEntries[] = {
    {"FastVideo", "fastvideo:none", "none", "the default, if no type is given", ""},
    {"FastVideo", "fastvideo:full", "full", "recomputes every block of every block list",
     kNoGenerator, EarlyStop::kAsInPolicy, "--enable-gradient-checkpointing-type full"},
    {"FastVideo", "fastvideo:block_skip", "nth_first(1)",
     "recomputes the blocks with i % 1 == 0, which are all blocks",
     "n_layer is 1 and cannot be changed, so the mode equals full", EarlyStop::kAsInPolicy,
     "--enable-gradient-checkpointing-type block_skip"},
    {"FastVideo", "fastvideo(type=block_skip,n_layer=N)", "nth_first({N})",
     "recomputes the blocks with i % N == 0, counted in each block list",
     in_list("N=0 causes a division by zero in FastVideo"), EarlyStop::kAsInPolicy,
     "# in the training pipeline: no flag sets "
     "n_layer\napply_activation_checkpointing(transformer, checkpointing_type=\"block_skip\", "
     "n_layer={N})"},
    {"FastVideo", "fastvideo(type=block_skip)", "nth_first(1)", "n_layer defaults to 1",
     "n_layer defaults to 1, so the mode equals full"},
    {"FastVideo", "fastvideo(type=none)", "none", "the same as fastvideo:none", ""},
    {"FastVideo", "fastvideo(type=full)", "full", "the same as fastvideo:full", kNoGenerator},
    {"FastVideo", "fastvideo(type=ops)", "ops_root", "the same as fastvideo:ops", kWholeModel},
    {"FastVideo", "fastvideo(type=attn_only)", "attn_only", "the same as fastvideo:attn_only",
     kNameRule},
    {"FastVideo", "fastvideo:ops", "ops_root", "the whole transformer is one region", kWholeModel,
     EarlyStop::kAsInPolicy, "--enable-gradient-checkpointing-type ops"},
    {"FastVideo", "fastvideo:ops_block", "ops_block", "one region per block; attention is kept", "",
     EarlyStop::kAsInPolicy, "--enable-gradient-checkpointing-type ops", "pull request 1716"},
    {"FastVideo", "fastvideo:attn_only", "attn_only",
     "keeps attention, matched by op name, and all functional collectives", kNameRule,
     EarlyStop::kAsInPolicy, "--enable-gradient-checkpointing-type attn_only", "pull request 1410"},
    {"FastVideo", "fastvideo:attn_only_v1", "attn_only_v1", "keeps attention and reduce-scatter",
     "", EarlyStop::kAsInPolicy, "--enable-gradient-checkpointing-type attn_only",
     "first version of pull request 1410"},
    {"FastVideo", "fastvideo(selective_checkpointing=F)", "", "recomputes a share of the blocks",
     "FastVideo parses this flag but never reads it; use fastvideo:full or "
     "fastvideo(type=block_skip,n_layer=N)"},

    {"torchtitan", "titan:none", "none", "checkpoints nothing", ""},
    {"torchtitan", "titan:full", "full_nostop",
     "recomputes every block to its end: FullAC before torch_remat", "", EarlyStop::kAsInPolicy,
     "[activation_checkpoint]\nmode = \"full\"", "until June 2026"},
    {"torchtitan", "titan:selective", "sac_titan",
     "the default before torch_remat: every second mm is kept",
     Pitfall(
         "aten::addmm is always kept, and grouped matmuls are never kept; a projection with the "
         "shape of the router's gate is excluded too",
         Concern::kBiasesOrExperts),
     EarlyStop::kAsInPolicy,
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"",
     "until June 2026"},
    {"torchtitan", "titan:selective(force_recompute_mm_shapes_by_fqns=F)",
     "sac_titan_excluding({F})",
     "excludes the named linears and all linears of the same shapes, instead of router gates",
     in_list("torchtitan silently ignores a name that matches nothing; rematch warns"),
     EarlyStop::kAsInPolicy,
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = "
     "\"op\"\nper_op_sac_force_recompute_mm_shapes_by_fqns = [\"{F;\", \"}\"]",
     "until June 2026"},
    {"torchtitan", "titan:selective_even", "sac_titan_even",
     "keeps the even matmuls instead of the odd matmuls", ""},
    {"torchtitan", "titan:selective_2024", "sac_titan_2024", "torchtitan's first list", kMmList},
    {"torchtitan", "titan:selective_2025(M)", "sac_titan_2025({M})",
     "keeps the ops listed for one model: llama3, qwen3, llama4, deepseek_v3 or gpt_oss", ""},
    {"torchtitan", "titan:SelectiveActivationRematConfig",
     "remat_titan(save=[*],recompute=[*routed_experts.w13.*])",
     "the default on torch_remat: every declared region except the experts' first projection",
     in_list("norms and activations are not regions, so they are recomputed; unlike "
             "titan:selective, this mode does not recompute every second mm"),
     EarlyStop::kAsInPolicy, "activation_checkpoint=SelectiveActivationRematConfig()",
     "since July 2026, based on torch_remat"},
    {"torchtitan", "titan:FullActivationRematConfig", "remat_titan(save=[])",
     "on torch_remat: recomputes every block, except the expert selection and the block's final "
     "add",
     "", EarlyStop::kAsInPolicy, "activation_checkpoint=FullActivationRematConfig()",
     "since July 2026, based on torch_remat"},
    {"torchtitan", "titan:ActivationRematConfig(save_regions=S,recompute_regions=R)",
     "remat_titan(save={S},recompute={R})",
     "on torch_remat: saves the regions that a pattern names, with exceptions", kRegionsOfTitan,
     EarlyStop::kAsInPolicy,
     "activation_checkpoint=ActivationRematConfig(save_regions=[\"{S;\", \"}\"], "
     "recompute_regions=[\"{R;\", \"}\"])",
     "since July 2026, based on torch_remat"},
    {"torchtitan", "titan:ActivationRematConfig(save_regions=S)", "remat_titan(save={S})",
     "on torch_remat: saves the regions that a pattern names", kRegionsOfTitan,
     EarlyStop::kAsInPolicy,
     "activation_checkpoint=ActivationRematConfig(save_regions=[\"{S;\", \"}\"])",
     "since July 2026, based on torch_remat"},
    {"torchtitan", "titan:RegionAC(save_regions=S)", "remat_titan(save={S})",
     "an earlier name of ActivationRematConfig", kRegionsOfTitan},
    {"torchtitan", "titan:SelectiveAC", "", "the name of two different modes", kSelectiveAc},
    {"torchtitan", "titan(selective_ac_option=0)", "full",
     "layer mode with N = 0: recomputes every layer", "", EarlyStop::kOff,
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"0\"",
     "until March 2026"},
    {"torchtitan", "titan(selective_ac_option=op)", "sac_titan", "op mode", "",
     EarlyStop::kAsInPolicy,
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"",
     "until June 2026"},
    {"torchtitan", "titan(selective_ac_option=N)", "nth_last({N})",
     "retired layer mode: (i + 1) % N == 0", kCounter, EarlyStop::kOff,
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"{N}\"",
     "until March 2026"},
    {"torchtitan", "titan(mode=none)", "none", "checkpoints nothing; written as in the job's TOML",
     ""},
    {"torchtitan", "titan(mode=full)", "full_nostop", "titan:full, written as in the job's TOML",
     ""},
    {"torchtitan", "titan(mode=selective)", "sac_titan",
     "titan:selective, written as in the job's TOML", ""},
    {"torchtitan", "titan(mode=selective,selective_ac_option=op)", "sac_titan",
     "titan:selective, with its option written out", ""},
    {"torchtitan", "titan(mode=selective,selective_ac_option=0)", "full", "recomputes every layer",
     "", EarlyStop::kOff},
    {"torchtitan", "titan(mode=selective,selective_ac_option=N)", "nth_last({N})",
     "titan(selective_ac_option=N), written as in the job's TOML", kCounter, EarlyStop::kOff},
    {"torchtitan", "titan:split_flex_compiled", "sac_split_flex_compiled",
     "flex attention, compiled", "only a block with experts is split"},
    {"torchtitan", "titan:split_flex_eager", "sac_split_flex_eager", "flex attention, eager",
     "attention is fully recomputed, although the mode is selective"},
    {"torchtitan", "titan(memory_policy=default)", "sac_titan_all",
     "graph trainer: keeps all matmuls, not every second matmul", "", EarlyStop::kOn,
     "--compile.memory_policy default", "graph trainer"},
    {"torchtitan", "titan(memory_policy=eager)", "sac_titan",
     "graph trainer: does the same as the eager trainer", "", EarlyStop::kOn,
     "--compile.memory_policy eager", "graph trainer"},
    {"torchtitan", "titan(memory_policy=full)", "full_except()",
     "graph trainer: recomputes everything except random draws", "", EarlyStop::kAsInPolicy,
     "--compile.memory_policy full", "graph trainer"},
    {"torchtitan", "titan(memory_policy=full,full_recompute_save_ops=S)", "full_except({S})",
     "graph trainer: recomputes everything except the selected ops and random draws", ""},
    {"torchtitan", "titan(full_recompute_save_ops=S)", "",
     "graph trainer: lists ops to save, but sets no memory policy",
     "full_recompute_save_ops needs memory_policy=full, as in torchtitan"},
    {"torchtitan", "titan(memory_policy=sac_and_offload)", "sac_and_offload",
     "graph trainer: keeps the same tensors as default, and moves the largest of them to the host",
     in_list(
         "rematch offloads the input of the first layer instead of the output of the last but one, "
         "and ignores the mode's budget of 100 GB of host memory"),
     EarlyStop::kOn, "--compile.memory_policy sac_and_offload", "graph trainer"},
    {"torchtitan", "titan(memory_policy=auto_perf_maxing)", "",
     "graph trainer: an integer program chooses what to save", kASearch},
    {"torchtitan", "titan:memory_budget", "", "the compiler's partitioner decides what to save",
     "the mode needs a compiler's graph; choosing what to save within a budget is a search, not a "
     "policy"},
    {"torchtitan", "titan(mode=memory_budget)", "",
     "titan:memory_budget, written as in the job's TOML",
     "the mode needs a compiler's graph; choosing what to save within a budget is a search, not a "
     "policy"},
    {"torchtitan", "titan:flux", "full", "any mode except none, for torchtitan's Flux model",
     "every mode, including selective, recomputes whole blocks"},

    {"torchtune", "torchtune(enable_activation_checkpointing=true)", "full",
     "recomputes every layer", kNoGenerator, EarlyStop::kAsInPolicy,
     "enable_activation_checkpointing: true"},
    {"torchtune", "torchtune(enable_activation_checkpointing=false)", "none", "the default", ""},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_option=N)", "full",
     "recomputes every layer, whatever N is",
     "ac_option is ignored, as in torchtune, which reads it only with ac_mode=selective"},
    {"torchtune", "torchtune(ac_mode=full)", "full", "recomputes every layer", kNoGenerator,
     EarlyStop::kAsInPolicy, "enable_activation_checkpointing: false\nac_mode: full"},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=full)", "full",
     "the same mode, with every key written out", kNoGenerator},
    {"torchtune", "torchtune(ac_mode=full,ac_option=N)", "full",
     "recomputes every layer, whatever N is",
     "ac_option is ignored, as in torchtune, which reads it only with ac_mode=selective"},
    {"torchtune", "torchtune(ac_mode=none)", "none", "any mode except full and selective", ""},
    {"torchtune", "torchtune(ac_mode=none,ac_option=N)", "none",
     "checkpoints nothing, whatever N is",
     "ac_option is ignored, as in torchtune, which reads it only with ac_mode=selective"},
    {"torchtune", "torchtune(ac_mode=selective)", "", "selective without a number",
     "ac_option is missing: give N to checkpoint every N-th layer, or 0 to checkpoint every layer"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=0)", "full", "0: recomputes every layer",
     "", EarlyStop::kAsInPolicy,
     "enable_activation_checkpointing: false\nac_mode: selective\nac_option: 0"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=op)", "", "documented, not implemented",
     "torchtune fails with a ValueError from int(\"op\"); sac_titan_2024 is the documented list"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=N)", "nth_last({N})", "(i + 1) % N == 0",
     kCounter, EarlyStop::kAsInPolicy,
     "enable_activation_checkpointing: false\nac_mode: selective\nac_option: {N}"},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=none)", "none",
     "the same mode, with every key written out", ""},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective)", "",
     "selective without a number",
     "ac_option is missing: give N to checkpoint every N-th layer, or 0 to checkpoint every layer"},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=0)",
     "full", "the same mode, with every key written out", ""},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=op)",
     "", "documented, not implemented",
     "torchtune fails with a ValueError from int(\"op\"); sac_titan_2024 is the documented list"},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=N)",
     "nth_last({N})", "the same mode, with every key written out", kCounter},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M)", "", "both switches",
     "with both switches, torchtune checkpoints nothing; set only one of the two switches"},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M,ac_option=N)", "",
     "both switches",
     "with both switches, torchtune checkpoints nothing; set only one of the two switches"},
    {"torchtune", "torchtune(ac_mode=M)", "", "any other mode",
     "for any other mode, torchtune silently checkpoints nothing; use full or selective"},
    {"torchtune", "torchtune(enable_activation_offloading=true)", "",
     "offloading without checkpointing",
     "the setting needs enable_activation_checkpointing=true, as in torchtune"},
    {"torchtune",
     "torchtune(enable_activation_checkpointing=true,enable_activation_offloading=true)",
     "offload_inputs(full)", "recomputes every layer; region inputs are on the host", kRegionsOnly,
     EarlyStop::kAsInPolicy,
     "enable_activation_checkpointing: true\nenable_activation_offloading: true"},

    {"modalities", "modalities:none", "none",
     "checkpoints nothing: the config has no activation-checkpointed model", ""},
    {"modalities", "modalities:full", "full", "recomputes every child module of layers_fqn",
     kNoGenerator, EarlyStop::kAsInPolicy,
     "ac_variant: full_activation_checkpointing\nac_fun_params: {}"},
    {"modalities", "modalities:selective_layer", "", "ac_freq is missing",
     "give ac_freq=N with N >= 1; modalities raises an unrelated AttributeError for a missing or "
     "invalid value"},
    {"modalities", "modalities:selective_layer(ac_freq=N)", "nth_last({N})", "(i + 1) % N == 0",
     kSharedCounter, EarlyStop::kAsInPolicy,
     "ac_variant: selective_layer_activation_checkpointing\nac_fun_params:\n  ac_freq: {N}"},
    {"modalities", "modalities:selective_op", "", "save_ops_keys is missing",
     "the mode needs save_ops_keys, as in modalities: "
     "modalities:selective_op(ops.aten.mm.default)"},
    {"modalities", "modalities:selective_op(K)", "sac_modalities({K})",
     "keeps the ops that the keys name, but only every second aten.mm", kKeys,
     EarlyStop::kAsInPolicy,
     "ac_variant: selective_op_activation_checkpointing\nac_fun_params:\n  save_ops_keys:\n    - "
     "{K;\n    - }"},
    {"modalities", "modalities(ac_variant=full_activation_checkpointing)", "full",
     "modalities:full, written as in modalities' configuration; layers_fqn=F may be added",
     kNoGenerator},
    {"modalities", "modalities(ac_variant=selective_layer_activation_checkpointing,ac_freq=N)",
     "nth_last({N})", "(i + 1) % N == 0", kSharedCounter},
    {"modalities", "modalities(ac_variant=selective_op_activation_checkpointing,save_ops_keys=K)",
     "sac_modalities({K})", "keeps the ops that the keys name, but only every second aten.mm",
     kKeys},

    {"modalities", "modalities:fsdp1(activation_checkpointing_modules=[GPT2Block])", "full",
     "the FSDP1 component: checkpoints every module of the class GPT2Block",
     in_list("this component wraps modules after FSDP1, while other components wrap modules before "
             "FSDP1")},
    {"modalities", "modalities:fsdp1(activation_checkpointing_modules=M)", "",
     "the FSDP1 component: checkpoints modules of classes other than GPT2Block",
     "the mode selects modules by Python class; write [GPT2Block] for every block, or "
     "recompute_modules(...) for parts of a block"},

    {"diffusers", "diffusers:none", "none", "the default", ""},
    {"diffusers", "diffusers:enable_gradient_checkpointing", "full", "recomputes every block",
     in_list("the mode is also active in eval(), if gradients are enabled"), EarlyStop::kAsInPolicy,
     "model.enable_gradient_checkpointing()"},
    {"diffusers", "diffusers(every=N)", "nth_first({N})",
     "proposed: recomputes the blocks with i % N == 0", ""},
    {"diffusers", "diffusers(skip_every=N)", "skip_nth({N})",
     "proposed: recomputes all blocks except every N-th block",
     "the proposal does not say which of N layers is skipped"},
    {"diffusers", "diffusers(skip_layers=L)", "skip_list({L})",
     "proposed: recomputes all blocks except the listed blocks",
     in_list("diffusers ignores unknown indices, but rematch rejects them")},
    {"diffusers", "diffusers(gradient_checkpointing_func=F)", "",
     "checkpoints with the user's own function",
     "rematch cannot run a Python function as a policy; write the function's rule as a policy "
     "file"},

    {"Megatron-LM", "megatron:none", "none", "the default", ""},
    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=N)",
     "segments({N})", "segments of N layers", in_list("N=0 is an endless loop in Megatron-LM"),
     EarlyStop::kOff,
     "--recompute-granularity full --recompute-method uniform --recompute-num-layers {N}"},
    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=N)",
     "first_n({N})", "recomputes the first N layers of each pipeline stage",
     in_list("Megatron-LM does not check N, and with fp8 it begins at a later layer"),
     EarlyStop::kOff,
     "--recompute-granularity full --recompute-method block --recompute-num-layers {N}"},
    {"Megatron-LM", "megatron(recompute_modules=[gdn_norm_out])", "",
     "recomputes the output norm of gated delta nets", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[gdp_in_proj])", "",
     "recomputes the input projection of gated delta products", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[gdp_qkv])", "",
     "recomputes convolution and QKV of gated delta products", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[mhc])", "", "hyper connections",
     "the module needs enable_mhc_connections, and no model of rematch has hyper connections"},
    {"Megatron-LM", "megatron(recompute_granularity=selective,recompute_modules=M)",
     "recompute_modules({M})", "recomputes the modules and keeps everything else", "",
     EarlyStop::kOff, "--recompute-granularity selective --recompute-modules {M; }"},
    {"Megatron-LM", "megatron(recompute_granularity=selective)", "recompute_modules([core_attn])",
     "its default module", in_list("with fused attention the mode saves almost nothing"),
     EarlyStop::kOff, "--recompute-granularity selective"},
    {"Megatron-LM", "megatron(recompute_modules=M)", "recompute_modules({M})",
     "the same mode, because selective is the default granularity", "", EarlyStop::kOff},
    {"Megatron-LM", "megatron:recompute_activations", "recompute_modules([core_attn])",
     "recomputes the default module; an older flag for the same mode",
     in_list("with fused attention the mode saves almost nothing"), EarlyStop::kOff},
    {"Megatron-LM", "megatron:distribute_saved_activations", "", "shards saved inputs over ranks",
     kOneProcess},
    {"Megatron-LM", "megatron(offload_modules=[qkv_linear])", "offload_modules([qkv_linear])",
     "keeps the input of the QKV projection on the host", kBytesNotGroups},
    {"Megatron-LM", "megatron(offload_modules=[fused_group_mlp])",
     "offload_modules([fused_group_mlp])", "keeps the input of the grouped experts on the host",
     in_list("the module needs use_transformer_engine_op_fuser and cannot be combined with "
             "expert_fc1 and moe_act")},
    {"Megatron-LM", "megatron(offload_modules=[gdp_qkv])", "",
     "keeps the input of gated delta products' convolution on the host", kNoGatedDelta},
    {"Megatron-LM", "megatron(offload_modules=M)", "offload_modules({M})",
     "keeps the modules' inputs on the host; nothing is recomputed", kBytesNotGroups,
     EarlyStop::kAsInPolicy, "--fine-grained-activation-offloading --offload-modules {M; }", "",
     refusal_of_megatron},

    {"MaxText", "maxtext:none", "none", "recomputes nothing", ""},
    {"MaxText", "maxtext:full", "full", "the default", "", EarlyStop::kAsInPolicy,
     "remat_policy: full"},
    {"MaxText", "maxtext:save_out_proj", "remat_save_out_proj", "named tensors kept", "",
     EarlyStop::kAsInPolicy, "remat_policy: save_out_proj"},
    {"MaxText", "maxtext:save_qkv_proj", "remat_save_qkv_proj", "named tensors kept",
     "in rematch, these names mean query and key after norm and rotary embedding",
     EarlyStop::kAsInPolicy, "remat_policy: save_qkv_proj"},
    {"MaxText", "maxtext:save_dot_except_mlp", "remat_save_dot_except_mlp", "named tensors kept",
     "", EarlyStop::kAsInPolicy, "remat_policy: save_dot_except_mlp"},
    {"MaxText", "maxtext:save_dot_except_mlpwi", "remat_save_dot_except_mlpwi",
     "named tensors kept", "", EarlyStop::kAsInPolicy, "remat_policy: save_dot_except_mlpwi"},
    {"MaxText", "maxtext:save_dot_with_context_except_mlp",
     "remat_save_dot_with_context_except_mlp", "named tensors kept", "", EarlyStop::kAsInPolicy,
     "remat_policy: save_dot_with_context_except_mlp"},
    {"MaxText", "maxtext:minimal", "remat_minimal",
     "keeps the results of attention's projections and dense feed-forwards",
     "recomputes attention itself, routers, routed experts and latent attention's down projection",
     EarlyStop::kAsInPolicy, "remat_policy: minimal"},
    {"MaxText", "maxtext:minimal_with_context", "remat_minimal_with_context",
     "keeps what minimal keeps, and attention's output",
     "MaxText's own list of policies lacks this mode; routed experts are recomputed",
     EarlyStop::kAsInPolicy, "remat_policy: minimal_with_context"},
    {"MaxText", "maxtext:minimal_flash", "remat_minimal_with_context",
     "old name of minimal_with_context", ""},
    {"MaxText", "maxtext:minimal_with_quantization", "remat_minimal",
     "keeps what minimal keeps, and the results of quantization",
     "rematch quantizes nothing, so the mode equals minimal"},
    {"MaxText", "maxtext:minimal_with_context_and_quantization", "remat_minimal_with_context",
     "keeps what minimal_with_context keeps, and the results of quantization",
     "rematch quantizes nothing, so the mode equals minimal_with_context"},
    {"MaxText", "maxtext:custom", "", "keeps, offloads or recomputes each named tensor",
     "custom needs device, offload or remat for each tensor, such as "
     "maxtext:custom(out_proj=device)"},
    {"MaxText", "maxtext:custom(T)", "remat_custom({T})",
     "for each named tensor: keep it on the device (device) or on the host (offload), or recompute "
     "it (remat)",
     in_list("in MaxText the tensors of experts also have the names of dense layers, so "
             "mlpwo=device also keeps moe_mlpwo; in rematch each name stands for one tensor")},
    {"MaxText", "maxtext(remat_policy_for_vit=P)", "", "a policy for the vision encoder",
     "MaxText declares this option but never reads it; use maxtext:minimal or another mode"},
    {"MaxText", "maxtext:minimal_offloaded", "remat_minimal_offloaded",
     "keeps on the host the tensors that minimal keeps", "", EarlyStop::kAsInPolicy,
     "remat_policy: minimal_offloaded"},
    {"MaxText", "maxtext:qkv_proj_offloaded", "remat_qkv_proj_offloaded",
     "keeps query, key and value on the host", "", EarlyStop::kAsInPolicy,
     "remat_policy: qkv_proj_offloaded"},

    {"DeepSpeed", "deepspeed:checkpoint", "full_reentrant",
     "recomputes every layer, with reentrant checkpointing", ""},
    {"DeepSpeed", "deepspeed(activation_checkpoint_interval=0)", "none", "checkpoints nothing", ""},
    {"DeepSpeed", "deepspeed(activation_checkpoint_interval=N)", "segments({N})",
     "recomputes pipeline segments of N layers", in_list("0 disables checkpointing"),
     EarlyStop::kOff, "PipelineModule(..., activation_checkpoint_interval={N})"},
    {"DeepSpeed", "deepspeed:cpu_checkpointing", "offload_inputs(full_reentrant)",
     "keeps region inputs on the host", ""},
    {"DeepSpeed", "deepspeed:partition_activations", "", "shards region inputs over ranks",
     kOneProcess},
    {"DeepSpeed", "deepspeed:contiguous_memory_optimization", "",
     "keeps region inputs in one buffer",
     "the setting needs partition_activations, which rematch does not support"},
    {"HF Transformers", "huggingface:none", "none", "the default", ""},
    {"HF Transformers", "huggingface(gradient_checkpointing=false)", "none", "the default", ""},
    {"HF Transformers", "huggingface:gradient_checkpointing", "full", "recomputes every layer",
     in_list("the mode is inactive in eval(); in diffusers it is active"), EarlyStop::kAsInPolicy,
     "model.gradient_checkpointing_enable({\"use_reentrant\": False})"},
    {"HF Transformers", "huggingface(gradient_checkpointing=true)", "full",
     "huggingface:gradient_checkpointing, written as in TrainingArguments", ""},
    {"HF Transformers", "huggingface:activation_checkpointing", "full",
     "the new name of gradient_checkpointing, since Transformers 5.23",
     in_list("the mode is inactive in eval(); in diffusers it is active")},
    {"HF Transformers", "huggingface(offload=true)", "offload_inputs(full)",
     "recomputes every layer; the layer's input is on the host", kComputeStream,
     EarlyStop::kAsInPolicy,
     "model.activation_checkpointing_enable({\"use_reentrant\": False}, offload=True)",
     "since 5.23"},
    {"HF Transformers", "huggingface(every_n_layers=N)", "nth_first({N})",
     "recomputes the layers with i % N == 0, since Transformers 5.23", kLayersOfModel,
     EarlyStop::kAsInPolicy,
     "model.activation_checkpointing_enable({\"use_reentrant\": False}, every_n_layers={N})",
     "since 5.23"},
    {"HF Transformers", "huggingface(every_n_layers=N,offload=true)",
     "offload_inputs(nth_first({N}))",
     "recomputes the layers with i % N == 0; their inputs are on the host", kLayersOfModel,
     EarlyStop::kAsInPolicy,
     "model.activation_checkpointing_enable({\"use_reentrant\": False}, every_n_layers={N}, "
     "offload=True)",
     "since 5.23"},
    {"axolotl", "axolotl:none", "none", "the default", ""},
    {"axolotl", "axolotl(gradient_checkpointing=false)", "none", "the default", ""},
    {"axolotl", "axolotl(gradient_checkpointing=true)", "full", "recomputes every layer", "",
     EarlyStop::kAsInPolicy,
     "gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false"},
    {"axolotl", "axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)",
     "offload_inputs(full)", "recomputes every layer; the layer's input is on the host", "",
     EarlyStop::kAsInPolicy, "gradient_checkpointing: true\nactivation_offloading: hidden_states"},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing=true)", "ops_block",
     "recomputes every layer except attention",
     in_list("axolotl recomputes sliding and chunked attention, unless save_sliding_window is set"),
     EarlyStop::kAsInPolicy, "gradient_checkpointing: true\nselective_checkpointing: true",
     "since 0.18"},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing.offload=true)",
     "offload_saved(ops_block)", "recomputes every layer; attention is kept on the host",
     in_list("axolotl leaves tensors of less than 1 MiB on the device"), EarlyStop::kAsInPolicy,
     "gradient_checkpointing: true\nselective_checkpointing:\n  offload: true", "since 0.18"},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing.save=S)", "",
     "keeps ops whose names contain one of the given substrings",
     "rematch cannot select ops by a substring of their names; write a policy file with a save "
     "list"},
    {"axolotl", "axolotl(selective_checkpointing=true)", "", "without gradient checkpointing",
     "the setting needs gradient_checkpointing=true, as in axolotl"},
    {"NeMo Automodel", "automodel:full", "full", "recomputes every layer", ""},
    {"NeMo Automodel", "automodel:selective", "sac_grouped",
     "keeps every second matmul; mm, linear and grouped mm share one count",
     Pitfall("NeMo Automodel's documentation recommends full for models with experts",
             Concern::kExperts),
     EarlyStop::kOn},
    {"VeOmni", "veomni(recompute_last_n_layers=N)", "last_n({N})", "recomputes the last N layers",
     in_list("recomputing the last block saves nothing at the start of backward, where the peak "
             "usually is")},
    {"VeOmni", "veomni(recompute_last_n_layers=N,selective_n_layers=M)", "",
     "recomputes the last N layers, the first M of these selectively",
     "a policy has one rule for all layers; rematch search can mix rules"},
    {"torch_remat", "torch_remat(save=S)", "remat(save={S})",
     "recomputes every block, except the saved parts", "", EarlyStop::kAsInPolicy,
     "rematch plan --policy 'remat(save={S})' --trace FILE -o remat.json\n"
     "rematch export remat.json --to remat --trace FILE -o checkpointed.py"},
    {"PyTorch", "pytorch:checkpoint", "full", "non-reentrant checkpointing", ""},
    {"PyTorch", "pytorch:checkpoint_reentrant", "full_reentrant", "reentrant checkpointing", ""},
    {"PyTorch", "pytorch:selective_1", "save_mm",
     "the first policy of PyTorch's blog: mm, bmm, addmm",
     "the policy also keeps outputs that backward does not need"},
    {"PyTorch", "pytorch:selective_2", "save_compute",
     "the second policy of PyTorch's blog: compute-intensive ops",
     "PyTorch's list is private and may change"},
};

constexpr TrainingSystem kSystems[] = {
    {"HF Transformers", "transformers", "a call on the model, before passing it to the Trainer",
     "github.com/huggingface/transformers"},
    {"diffusers", "diffusers", "a call on the model", "github.com/huggingface/diffusers"},
    {"torchtitan", "torchtitan",
     "the job's TOML (a table), the trainer's config in Python (a field), or the command line (a "
     "flag)",
     "github.com/pytorch/torchtitan"},
    {"torchtune", "torchtune", "the recipe's YAML", "github.com/meta-pytorch/torchtune"},
    {"FastVideo", "fastvideo", "the trainer's command line", "github.com/hao-ai-lab/FastVideo"},
    {"modalities", "modalities", "the activation-checkpointed model's config, next to layers_fqn",
     "github.com/Modalities/modalities"},
    {"axolotl", "axolotl", "the run's YAML", "github.com/axolotl-ai-cloud/axolotl"},
    {"Megatron-LM", "megatron", "the trainer's command line", "github.com/NVIDIA/Megatron-LM"},
    {"torch_remat", "remat", "two commands, which write a Python file for the training script",
     "package torch_remat"},
    {"MaxText", "", "the run's YAML", "github.com/AI-Hypercomputer/maxtext"},
    {"DeepSpeed", "", "the pipeline's constructor", "github.com/deepspeedai/DeepSpeed"},
    {"NeMo Automodel", "", "the recipe's YAML", "github.com/NVIDIA-NeMo/Automodel"},
    {"VeOmni", "", "the run's YAML", "github.com/ByteDance-Seed/VeOmni"},
    {"PyTorch", "", "a call in the training script",
     "torch.utils.checkpoint, and PyTorch's blog on activation checkpointing"},
};

}  // namespace

std::span<const SystemEntry> system_entries() { return kEntries; }

std::span<const TrainingSystem> training_systems() { return kSystems; }

const TrainingSystem* system_of_target(std::string_view target) {
  for (const TrainingSystem& system : kSystems) {
    if (!target.empty() && system.target == target) return &system;
  }
  return nullptr;
}

}  // namespace rematch
