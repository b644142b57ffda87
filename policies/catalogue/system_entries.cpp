// The table of the systems' spellings, taken from their public sources as of mid 2026.
#include "policies/catalogue/systems.h"

namespace rematch {
namespace {

using Concern = Policy::Concern;

constexpr Trap in_list(const char* text) { return {text, Concern::kEveryModel, TrapSaid::kInList}; }

constexpr Trap kNoGenerator(
    "does not restore the generator, so recompute draws another dropout mask; here draws are "
    "replayed",
    Concern::kDraws);
constexpr const char* kCounter =
    "its counter is never reset, so a second model in the process starts at another phase; an N "
    "larger than the number of layers silently checkpoints nothing";
constexpr const char* kSharedCounter =
    "its counter is an attribute of torch's own function, shared by all models of the process";
constexpr Trap kKeys =
    in_list("an unknown key fails only at the first forward; with biases the mm key keeps nothing");
constexpr Trap kMmList(
    "lists aten::mm, but biased linears are aten::addmm, so it keeps none of them",
    Concern::kBiases);

constexpr Trap kRegionsOnly = in_list(
    "it also offloads tensors from 1 KiB up that autograd saves outside the layers; here they "
    "stay");
constexpr Trap kBytesNotGroups = in_list(
    "a share or a minimum size of offloaded tensors is not supported here; write it as a policy "
    "file");
constexpr const char* kSelectiveAc =
    "SelectiveAC kept lists of ops until torchtitan moved to torch_remat, and keeps regions since; "
    "write titan:selective for the lists, or titan:SelectiveActivationRematConfig for the regions";
constexpr Trap kRegionsOfTitan = in_list(
    "a pattern that matches no region is ignored there and refused here; latent attention's "
    "regions "
    "are not known here");
constexpr const char* kNoGatedDelta =
    "it is a part of gated delta layers, and no model here has one";
constexpr Trap kComputeStream = in_list("both copies run on the compute stream there; not here");
constexpr Trap kLayersOfModel =
    in_list("layers are counted over the whole model there, and anew in each block list here");
constexpr const char* kASearch = "save sets for a budget are a search, not a rule";
constexpr const char* kOneProcess = "it shards kept tensors over ranks; there is one process here";

constexpr SystemEntry kEntries[] = {
    {"FastVideo", "fastvideo:none", "none", "the default: no type given", ""},
    {"FastVideo", "fastvideo:full", "full", "every block of every block list", kNoGenerator},
    {"FastVideo", "fastvideo:block_skip", "nth_first(1)", "blocks i % 1 == 0: all of them",
     "its n_layer is 1 and cannot be changed, so this is full"},
    {"FastVideo", "fastvideo(type=block_skip,n_layer=N)", "nth_first({N})",
     "blocks i % N == 0, anew in each block list", in_list("N=0 divides by zero there")},
    {"FastVideo", "fastvideo(type=block_skip)", "nth_first(1)", "n_layer defaults to 1",
     "its n_layer defaults to 1, so this is full"},
    {"FastVideo", "fastvideo(type=full)", "full", "the same as fastvideo:full", kNoGenerator},
    {"FastVideo", "fastvideo:ops", "ops_root", "one region: the whole transformer",
     "the root region has the peak of none, and its exact names miss biased linears; ops_block "
     "does what was intended"},
    {"FastVideo", "fastvideo:ops_block", "ops_block", "one region a block, attention kept", ""},
    {"FastVideo", "fastvideo:attn_only", "attn_only",
     "attention, matched by op name, and all functional collectives",
     "its name rule misses aten::_flash_attention_forward and block-sparse attention; here every "
     "fused attention op is kept"},
    {"FastVideo", "fastvideo:attn_only_v1", "attn_only_v1", "attention and reduce-scatter", ""},
    {"FastVideo", "fastvideo(selective_checkpointing=F)", "", "a share of the blocks",
     "it parses this flag but never reads it; use fastvideo:full or "
     "fastvideo(type=block_skip,n_layer=N)"},

    {"torchtitan", "titan:none", "none", "no region", ""},
    {"torchtitan", "titan:full", "full_nostop",
     "every block, early stop off: FullAC until it moved to torch_remat", ""},
    {"torchtitan", "titan:selective", "sac_titan",
     "the default until it moved to torch_remat: every second mm kept",
     Trap("aten::addmm is always kept, grouped matmuls never; a projection with the router gate's "
          "shape is excluded too",
          Concern::kBiasesOrExperts)},
    {"torchtitan", "titan:selective(force_recompute_mm_shapes_by_fqns=F)",
     "sac_titan_excluding({F})",
     "excludes these linears and those of their shapes, instead of the router gates",
     in_list("a name that matches nothing is silently ignored there; here it is a warning")},
    {"torchtitan", "titan:selective_even", "sac_titan_even", "the other parity", ""},
    {"torchtitan", "titan:selective_2024", "sac_titan_2024", "its first list", kMmList},
    {"torchtitan", "titan:selective_2025(M)", "sac_titan_2025({M})",
     "the list of one model: llama3, qwen3, llama4, deepseek_v3, gpt_oss", ""},
    {"torchtitan", "titan:SelectiveActivationRematConfig",
     "remat_titan(save=[*],recompute=[*routed_experts.w13.*])",
     "the default on torch_remat: every declared region but the experts' first projection",
     in_list(
         "norms and activations are no regions and are recomputed; no mm is left out by count")},
    {"torchtitan", "titan:FullActivationRematConfig", "remat_titan(save=[])",
     "on torch_remat: every block, but expert selection and the last adds are not run again", ""},
    {"torchtitan", "titan:ActivationRematConfig(save_regions=S,recompute_regions=R)",
     "remat_titan(save={S},recompute={R})", "on torch_remat: regions by pattern, with exceptions",
     kRegionsOfTitan},
    {"torchtitan", "titan:ActivationRematConfig(save_regions=S)", "remat_titan(save={S})",
     "on torch_remat: regions by pattern", kRegionsOfTitan},
    {"torchtitan", "titan:RegionAC(save_regions=S)", "remat_titan(save={S})",
     "the name of ActivationRematConfig for some weeks", kRegionsOfTitan},
    {"torchtitan", "titan:SelectiveAC", "", "two policies of one name", kSelectiveAc},
    {"torchtitan", "titan(selective_ac_option=0)", "full", "layer mode with 0: every layer", "",
     EarlyStop::kOff},
    {"torchtitan", "titan(selective_ac_option=op)", "sac_titan", "op mode", ""},
    {"torchtitan", "titan(selective_ac_option=N)", "nth_last({N})",
     "retired layer mode: (i + 1) % N == 0", kCounter, EarlyStop::kOff},
    {"torchtitan", "titan:split_flex_compiled", "sac_split_flex_compiled",
     "flex attention, compiled", "only a block with experts is split"},
    {"torchtitan", "titan:split_flex_eager", "sac_split_flex_eager", "flex attention, eager",
     "attention is recomputed whole, although the mode is selective"},
    {"torchtitan", "titan(memory_policy=default)", "sac_titan_all", "graph trainer: no alternation",
     "", EarlyStop::kOn},
    {"torchtitan", "titan(memory_policy=eager)", "sac_titan", "graph trainer, as eager", "",
     EarlyStop::kOn},
    {"torchtitan", "titan(memory_policy=full)", "full_except()",
     "graph trainer: recomputes all but random draws", ""},
    {"torchtitan", "titan(memory_policy=full,full_recompute_save_ops=S)", "full_except({S})",
     "graph trainer: recomputes all but selected ops and draws", ""},
    {"torchtitan", "titan(full_recompute_save_ops=S)", "",
     "graph trainer: selectors without the policy",
     "the selectors need memory_policy=full, as in torchtitan"},
    {"torchtitan", "titan(memory_policy=sac_and_offload)", "sac_and_offload",
     "graph trainer: keeps the tensors of default, the largest ones on the host",
     in_list("its host budget of 100 GB is not a limit here"), EarlyStop::kOn},
    {"torchtitan", "titan(memory_policy=auto_perf_maxing)", "", "graph trainer: an ILP's choice",
     kASearch},
    {"torchtitan", "titan:memory_budget", "", "the compiler's partitioner decides",
     "it needs a compiler's graph; save sets for a budget are a search, not a rule"},
    {"torchtitan", "titan:flux", "full", "its Flux model: any mode but none",
     "every mode, including selective, recomputes every block whole"},

    {"torchtune", "torchtune(enable_activation_checkpointing=true)", "full", "every layer",
     kNoGenerator},
    {"torchtune", "torchtune(enable_activation_checkpointing=false)", "none", "the default", ""},
    {"torchtune", "torchtune(ac_mode=full)", "full", "every layer", kNoGenerator},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=full)", "full",
     "the same, written out", kNoGenerator},
    {"torchtune", "torchtune(ac_mode=full,ac_option=N)", "full", "every layer, whatever N",
     "ac_option is ignored, as in torchtune, which reads it only with ac_mode=selective"},
    {"torchtune", "torchtune(ac_mode=none)", "none", "any mode but full and selective", ""},
    {"torchtune", "torchtune(ac_mode=selective)", "", "selective without a number",
     "ac_option is missing: give the N of every N-th layer, or 0 for every layer"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=0)", "full", "0: every layer", ""},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=op)", "", "documented, not implemented",
     "it fails there with a ValueError from int(\"op\"); sac_titan_2024 is the documented list"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=N)", "nth_last({N})", "(i + 1) % N == 0",
     kCounter},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=0)",
     "full", "the same, written out", ""},
    {"torchtune", "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=N)",
     "nth_last({N})", "the same, written out", kCounter},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M)", "", "both switches",
     "neither branch runs there, so nothing is checkpointed; give one of them"},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M,ac_option=N)", "",
     "both switches", "neither branch runs there, so nothing is checkpointed; give one of them"},
    {"torchtune", "torchtune(ac_mode=M)", "", "any other mode",
     "there it silently checkpoints nothing; use full or selective"},
    {"torchtune", "torchtune(enable_activation_offloading=true)", "", "offloading alone",
     "it needs enable_activation_checkpointing=true, as in torchtune"},
    {"torchtune",
     "torchtune(enable_activation_checkpointing=true,enable_activation_offloading=true)",
     "offload_inputs(full)", "every layer, region inputs on the host", kRegionsOnly},

    {"modalities", "modalities:full", "full", "every child of layers_fqn", kNoGenerator},
    {"modalities", "modalities:selective_layer", "", "ac_freq missing",
     "give ac_freq=N from 1; there a missing or invalid one raises an unrelated AttributeError"},
    {"modalities", "modalities:selective_layer(ac_freq=N)", "nth_last({N})", "(i + 1) % N == 0",
     kSharedCounter},
    {"modalities", "modalities:selective_op", "", "no keys",
     "it needs save_ops_keys, as in modalities: modalities:selective_op(ops.aten.mm.default)"},
    {"modalities", "modalities:selective_op(K)", "sac_modalities({K})",
     "keeps the ops of the keys, but only every second aten.mm", kKeys},
    {"modalities", "modalities(ac_variant=full_activation_checkpointing)", "full",
     "full in its configuration's words; layers_fqn=F may be added", kNoGenerator},
    {"modalities", "modalities(ac_variant=selective_layer_activation_checkpointing,ac_freq=N)",
     "nth_last({N})", "(i + 1) % N == 0", kSharedCounter},
    {"modalities", "modalities(ac_variant=selective_op_activation_checkpointing,save_ops_keys=K)",
     "sac_modalities({K})", "keeps the ops of the keys, but only every second aten.mm", kKeys},

    {"modalities", "modalities:fsdp1(activation_checkpointing_modules=[GPT2Block])", "full",
     "the component for FSDP1: every module of that class",
     in_list("it wraps after FSDP1, others before it")},
    {"modalities", "modalities:fsdp1(activation_checkpointing_modules=M)", "",
     "the component for FSDP1 with other classes",
     "it selects modules by Python class; write [GPT2Block] for every block, or "
     "recompute_modules(...) for parts of one"},

    {"diffusers", "diffusers:enable_gradient_checkpointing", "full", "every block",
     in_list("active in eval() too, if gradients are on")},
    {"diffusers", "diffusers(every=N)", "nth_first({N})", "as proposed: i % N == 0", ""},
    {"diffusers", "diffusers(skip_every=N)", "skip_nth({N})", "as proposed: all except every N-th",
     "the proposal does not fix the phase"},
    {"diffusers", "diffusers(skip_layers=L)", "skip_list({L})",
     "as proposed: all except those listed",
     in_list("unknown indices are ignored there; here they are refused")},
    {"diffusers", "diffusers(gradient_checkpointing_func=F)", "", "the user's own function",
     "a function cannot be named; write its rule as a policy file"},

    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=N)",
     "segments({N})", "segments of N layers", in_list("N=0 is an endless loop there"),
     EarlyStop::kOff},
    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=N)",
     "first_n({N})", "the first N layers of each pipeline stage",
     in_list("it does not check N; with fp8 it starts at a later layer"), EarlyStop::kOff},
    {"Megatron-LM", "megatron(recompute_modules=[gdn_norm_out])", "",
     "the output norm of gated delta nets", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[gdp_in_proj])", "",
     "the input projection of gated delta products", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[gdp_qkv])", "",
     "convolution and QKV of gated delta products", kNoGatedDelta},
    {"Megatron-LM", "megatron(recompute_modules=[mhc])", "", "hyper connections",
     "it needs enable_mhc_connections there, and no model here has hyper connections"},
    {"Megatron-LM", "megatron(recompute_granularity=selective,recompute_modules=M)",
     "recompute_modules({M})", "recomputes the modules, keeps everything else", "",
     EarlyStop::kOff},
    {"Megatron-LM", "megatron(recompute_granularity=selective)", "recompute_modules([core_attn])",
     "its default module", in_list("with fused attention it saves almost nothing"),
     EarlyStop::kOff},
    {"Megatron-LM", "megatron(recompute_modules=M)", "recompute_modules({M})",
     "the same, granularity selective", "", EarlyStop::kOff},
    {"Megatron-LM", "megatron:recompute_activations", "recompute_modules([core_attn])",
     "the same under its old flag", in_list("with fused attention it saves almost nothing"),
     EarlyStop::kOff},
    {"Megatron-LM", "megatron:distribute_saved_activations", "", "saved inputs in shards",
     kOneProcess},
    {"Megatron-LM", "megatron(offload_modules=[qkv_linear])", "offload_modules([qkv_linear])",
     "the input of the QKV projection on the host", kBytesNotGroups},
    {"Megatron-LM", "megatron(offload_modules=[fused_group_mlp])",
     "offload_modules([fused_group_mlp])", "the input of the grouped experts on the host",
     in_list(
         "it needs use_transformer_engine_op_fuser there, and excludes expert_fc1 and moe_act")},
    {"Megatron-LM", "megatron(offload_modules=[gdp_qkv])", "",
     "the input of gated delta products' convolution on the host", kNoGatedDelta},
    {"Megatron-LM", "megatron(offload_modules=M)", "offload_modules({M})",
     "the modules' inputs on the host, nothing recomputed", kBytesNotGroups},

    {"MaxText", "maxtext:none", "none", "no remat", ""},
    {"MaxText", "maxtext:full", "full", "the default", ""},
    {"MaxText", "maxtext:save_out_proj", "remat_save_out_proj", "named tensors kept", ""},
    {"MaxText", "maxtext:save_qkv_proj", "remat_save_qkv_proj", "named tensors kept",
     "query and key are named after norm and rotary embedding"},
    {"MaxText", "maxtext:save_dot_except_mlp", "remat_save_dot_except_mlp", "named tensors kept",
     ""},
    {"MaxText", "maxtext:save_dot_except_mlpwi", "remat_save_dot_except_mlpwi",
     "named tensors kept", ""},
    {"MaxText", "maxtext:save_dot_with_context_except_mlp",
     "remat_save_dot_with_context_except_mlp", "named tensors kept", ""},
    {"MaxText", "maxtext:minimal", "remat_minimal",
     "keeps the results of attention's projections and dense feed-forwards",
     "recomputes attention itself, routers, routed experts and latent attention's down projection"},
    {"MaxText", "maxtext:minimal_with_context", "remat_minimal_with_context",
     "the same, and attention's output",
     "MaxText's own list of policies lacks it; routed experts are recomputed"},
    {"MaxText", "maxtext:minimal_flash", "remat_minimal_with_context",
     "old name of minimal_with_context", ""},
    {"MaxText", "maxtext:minimal_with_quantization", "remat_minimal",
     "minimal, and the results of quantization", "nothing is quantized here, so this is minimal"},
    {"MaxText", "maxtext:minimal_with_context_and_quantization", "remat_minimal_with_context",
     "the same with attention", "nothing is quantized here, so this is minimal_with_context"},
    {"MaxText", "maxtext:custom", "", "a treatment for each named tensor",
     "it needs the places of tensors, there and here: maxtext:custom(out_proj=device)"},
    {"MaxText", "maxtext:custom(T)", "remat_custom({T})",
     "a place for each named tensor: device, offload or remat",
     in_list("experts' tensors have the names of dense ones too, so mlpwo=device keeps moe_mlpwo; "
             "here a name is one tensor")},
    {"MaxText", "maxtext(remat_policy_for_vit=P)", "", "a policy for the vision encoder",
     "the option is declared there and read nowhere; use maxtext:minimal or another mode"},
    {"MaxText", "maxtext:minimal_offloaded", "remat_minimal_offloaded",
     "minimal's tensors on the host", ""},
    {"MaxText", "maxtext:qkv_proj_offloaded", "remat_qkv_proj_offloaded",
     "query, key, value on the host", ""},

    {"DeepSpeed", "deepspeed:checkpoint", "full_reentrant", "reentrant, every layer", ""},
    {"DeepSpeed", "deepspeed(activation_checkpoint_interval=0)", "none", "off", ""},
    {"DeepSpeed", "deepspeed(activation_checkpoint_interval=N)", "segments({N})",
     "pipeline segments of N layers", in_list("0 switches it off"), EarlyStop::kOff},
    {"DeepSpeed", "deepspeed:cpu_checkpointing", "offload_inputs(full_reentrant)",
     "region inputs on the host", ""},
    {"DeepSpeed", "deepspeed:partition_activations", "", "region inputs in shards", kOneProcess},
    {"DeepSpeed", "deepspeed:contiguous_memory_optimization", "", "region inputs in one buffer",
     "it needs partition_activations, which needs ranks; there is one process here"},
    {"HF Transformers", "huggingface:gradient_checkpointing", "full", "every layer",
     in_list("inactive in eval(), unlike diffusers")},
    {"HF Transformers", "huggingface:activation_checkpointing", "full",
     "the same under its name since 5.23", in_list("inactive in eval(), unlike diffusers")},
    {"HF Transformers", "huggingface(offload=true)", "offload_inputs(full)",
     "every layer, its input on the host", kComputeStream},
    {"HF Transformers", "huggingface(every_n_layers=N)", "nth_first({N})",
     "layers i % N == 0, since 5.23", kLayersOfModel},
    {"HF Transformers", "huggingface(every_n_layers=N,offload=true)",
     "offload_inputs(nth_first({N}))", "layers i % N == 0, their inputs on the host",
     kLayersOfModel},
    {"axolotl", "axolotl(gradient_checkpointing=true)", "full", "every layer", ""},
    {"axolotl", "axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)",
     "offload_inputs(full)", "every layer, its input on the host", ""},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing=true)", "ops_block",
     "every layer, attention kept",
     in_list("sliding and chunked attention is recomputed there, unless save_sliding_window")},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing.offload=true)",
     "offload_saved(ops_block)", "the same, attention on the host", ""},
    {"axolotl", "axolotl(gradient_checkpointing=true,selective_checkpointing.save=S)", "",
     "keeps ops by parts of their names",
     "a part of a name is no selector; write a policy file with a save list"},
    {"axolotl", "axolotl(selective_checkpointing=true)", "", "without gradient checkpointing",
     "it needs gradient_checkpointing=true, there and here"},
    {"NeMo Automodel", "automodel:full", "full", "every layer", ""},
    {"NeMo Automodel", "automodel:selective", "sac_grouped",
     "every second mm, linear or grouped mm, in one count",
     Trap("with experts its own documentation advises full", Concern::kExperts), EarlyStop::kOn},
    {"VeOmni", "veomni(recompute_last_n_layers=N)", "last_n({N})", "the last N layers",
     in_list("the last block's recompute saves nothing at the usual peak")},
    {"VeOmni", "veomni(recompute_last_n_layers=N,selective_n_layers=M)", "",
     "the first M of them selective", "layers under two rules are a search's plan, not a policy"},
    {"PyTorch", "pytorch:checkpoint", "full", "non-reentrant", ""},
    {"PyTorch", "pytorch:checkpoint_reentrant", "full_reentrant", "reentrant", ""},
    {"PyTorch", "pytorch:selective_1", "save_mm", "the blog's first policy: mm, bmm, addmm",
     "keeps outputs that backward does not need"},
    {"PyTorch", "pytorch:selective_2", "save_compute",
     "the blog's second policy: compute-intensive ops", "the list is private and changes"},
};

}  // namespace

std::span<const SystemEntry> system_entries() { return kEntries; }

}  // namespace rematch
