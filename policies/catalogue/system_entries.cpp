// The table of the systems' spellings. Read from their public sources as of mid 2026.
#include "policies/catalogue/systems.h"

namespace rematch {
namespace {

constexpr const char* kNoGenerator =
    "leaves the generator as it is, so dropout draws anew in recompute; here draws are replayed";
constexpr const char* kCounter =
    "its counter is never reset, so a second model in the process starts at another phase; N "
    "beyond the layers checkpoints nothing and says nothing";
constexpr const char* kMmList =
    "lists aten::mm: biased linears are aten::addmm, of which it keeps none";

constexpr SystemEntry kEntries[] = {
    {"FastVideo", "fastvideo:full", "full", "every block of every block list", kNoGenerator},
    {"FastVideo", "fastvideo:block_skip", "nth_first(1)", "blocks i % 1 == 0: all of them",
     "its n_layer is 1 and no option sets it, so this is full"},
    {"FastVideo", "fastvideo(type=block_skip,n_layer=N)", "nth_first({N})",
     "blocks i % N == 0, anew in each block list", "N=0 divides by zero there"},
    {"FastVideo", "fastvideo:ops", "ops_root", "one region: the whole transformer",
     "the root region peaks like none; exact names: on biased linears it saves nothing"},
    {"FastVideo", "fastvideo:ops_block", "ops_block", "one region a block, attention kept", ""},
    {"FastVideo", "fastvideo:attn_only", "attn_only",
     "attention by a rule over names, all functional collectives",
     "its rule misses aten::_flash_attention_forward and block-sparse attention; here the class is "
     "meant"},
    {"FastVideo", "fastvideo:attn_only_v1", "attn_only_v1", "attention and reduce-scatter", ""},

    {"torchtitan", "titan:none", "none", "no region", ""},
    {"torchtitan", "titan:full", "full_nostop", "every block, early stop off", ""},
    {"torchtitan", "titan:selective", "sac_titan", "the default: every second mm kept",
     "aten::addmm is always kept, grouped matmuls never; another projection of the router gate's "
     "shape is left out with it"},
    {"torchtitan", "titan:selective_even", "sac_titan_even", "the other parity", ""},
    {"torchtitan", "titan:selective_2024", "sac_titan_2024", "its first list", kMmList},
    {"torchtitan", "titan:selective_2025(M)", "sac_titan_2025({M})",
     "the list of model M: llama3, qwen3, llama4, deepseek_v3, gpt_oss", ""},
    {"torchtitan", "titan(selective_ac_option=0)", "full", "layer mode with 0: every layer", ""},
    {"torchtitan", "titan(selective_ac_option=op)", "sac_titan", "op mode", ""},
    {"torchtitan", "titan(selective_ac_option=N)", "nth_last({N})",
     "retired layer mode: (i + 1) % N == 0", kCounter},
    {"torchtitan", "titan:split_flex_compiled", "sac_split_flex_compiled",
     "flex attention, compiled", "attention and experts apart only where a block has experts"},
    {"torchtitan", "titan:split_flex_eager", "sac_split_flex_eager", "flex attention, eager",
     "selective was asked for, attention is recomputed whole"},
    {"torchtitan", "titan(memory_policy=default)", "sac_titan_all", "graph trainer: no alternation",
     ""},
    {"torchtitan", "titan(memory_policy=eager)", "sac_titan", "graph trainer, as eager", ""},
    {"torchtitan", "titan(memory_policy=full,full_recompute_save_ops=S)", "full_except({S})",
     "graph trainer: all but selectors and draws", ""},
    {"torchtitan", "titan:memory_budget", "", "the compiler's partitioner trades",
     "it needs a compiler's graph; save sets for a budget are a search, not a rule"},

    {"torchtune", "torchtune(enable_activation_checkpointing=true)", "full", "every layer",
     kNoGenerator},
    {"torchtune", "torchtune(ac_mode=full)", "full", "every layer", kNoGenerator},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=0)", "full", "0: every layer", ""},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=op)", "", "documented, not implemented",
     "there it ends in int(\"op\"), a ValueError; write sac_titan_2024 for the list that was "
     "meant"},
    {"torchtune", "torchtune(ac_mode=selective,ac_option=N)", "nth_last({N})", "(i + 1) % N == 0",
     kCounter},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M)", "", "both switches",
     "neither branch runs there, so nothing is checkpointed; give one of them"},
    {"torchtune", "torchtune(enable_activation_checkpointing=true,ac_mode=M,ac_option=N)", "",
     "both switches", "neither branch runs there, so nothing is checkpointed; give one of them"},
    {"torchtune", "torchtune(ac_mode=M)", "", "any other mode",
     "there it silently checkpoints nothing; use full or selective"},

    {"modalities", "modalities:full", "full", "every child of layers_fqn", kNoGenerator},
    {"modalities", "modalities:selective_layer(ac_freq=N)", "nth_last({N})", "(i + 1) % N == 0",
     "its counter sits on torch's own function, shared by all models of the process"},
    {"modalities", "modalities:selective_op(K)", "sac_modalities({K})",
     "what the keys name, of aten.mm every second",
     "an unknown key fails at the first forward only; with biases the mm key keeps nothing"},

    {"diffusers", "diffusers:enable_gradient_checkpointing", "full", "every block",
     "active in eval() too, if gradients are on"},
    {"diffusers", "diffusers(every=N)", "nth_first({N})", "as proposed: i % N == 0", ""},
    {"diffusers", "diffusers(skip_every=N)", "skip_nth({N})", "as proposed: all but every N-th",
     "the phase was left open"},
    {"diffusers", "diffusers(skip_layers=L)", "skip_list({L})", "as proposed: all but a list",
     "unknown indices are ignored there; here they are refused"},

    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=N)",
     "segments({N})", "segments of N layers", "N=0 is an endless loop there"},
    {"Megatron-LM",
     "megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=N)",
     "first_n({N})", "the first N layers of each pipeline stage",
     "its range is not checked; with fp8 the window shifts"},
    {"Megatron-LM", "megatron(recompute_granularity=selective,recompute_modules=M)",
     "recompute_modules({M})", "the modules are recomputed, all else is kept",
     "core_attn with fused attention gains next to nothing"},
    {"Megatron-LM", "megatron(recompute_modules=M)", "recompute_modules({M})",
     "the same, granularity selective", ""},
    {"Megatron-LM", "megatron:recompute_activations", "recompute_modules([core_attn])",
     "its default module", "with fused attention it gains next to nothing"},

    {"MaxText", "maxtext:none", "none", "no remat", ""},
    {"MaxText", "maxtext:full", "full", "the default", ""},
    {"MaxText", "maxtext:save_out_proj", "remat_save_out_proj", "named tensors kept", ""},
    {"MaxText", "maxtext:save_qkv_proj", "remat_save_qkv_proj", "named tensors kept",
     "query and key are named behind norm and rotary embedding"},
    {"MaxText", "maxtext:save_dot_except_mlp", "remat_save_dot_except_mlp", "named tensors kept",
     ""},
    {"MaxText", "maxtext:save_dot_except_mlpwi", "remat_save_dot_except_mlpwi",
     "named tensors kept", ""},
    {"MaxText", "maxtext:save_dot_with_context_except_mlp",
     "remat_save_dot_with_context_except_mlp", "named tensors kept", ""},
    {"MaxText", "maxtext:minimal", "remat_minimal", "all matmuls kept",
     "attention itself is recomputed"},
    {"MaxText", "maxtext:minimal_with_context", "remat_minimal_with_context",
     "all matmuls and attention kept", "its own list of policies leaves this one out"},
    {"MaxText", "maxtext:minimal_offloaded", "", "all of minimal on the host",
     "moving activations to the host is not built yet"},
    {"MaxText", "maxtext:qkv_proj_offloaded", "", "query, key, value on the host",
     "moving activations to the host is not built yet"},

    {"DeepSpeed", "deepspeed:checkpoint", "full_reentrant", "reentrant, every layer", ""},
    {"DeepSpeed", "deepspeed(activation_checkpoint_interval=N)", "segments({N})",
     "pipeline segments of N layers", "0 switches it off"},
    {"HF Transformers", "huggingface:gradient_checkpointing", "full", "every layer",
     "not in eval(), unlike diffusers"},
    {"NeMo Automodel", "automodel:full", "full", "every layer", ""},
    {"NeMo Automodel", "automodel:selective", "sac_grouped",
     "every second of mm, linear and grouped mm in one count",
     "with experts its own documentation advises full"},
    {"VeOmni", "veomni(recompute_last_n_layers=N)", "last_n({N})", "the last N layers",
     "the last block's recompute saves nothing at the usual peak"},
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
