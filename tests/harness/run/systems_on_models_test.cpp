// Resolves every row of `rematch list --systems` on a suitable model. Checks that the plan has the
// regions of the system's own code, and keeps the same matmuls and attentions. The catalogue names
// the sources.
#include <map>
#include <set>

#include "policies/catalogue/systems.h"
#include "tests/support/catch.h"
#include "tests/support/policy_matrix.h"

namespace rematch::testing {
namespace {

// Returns a short name of a region: "0" is block 0, "0..1" is a segment of two blocks, "1.moe" is a
// part of block 1.
std::string place(const PlannedRegion& region) {
  const auto without_list = [](const std::string& scope) {
    return scope.starts_with("blocks.") ? scope.substr(7) : scope;
  };
  std::string text = without_list(region.first_scope);
  if (region.first_scope == region.last_scope) return text;
  return text.append("..").append(without_list(region.last_scope));
}

std::string kept(const RegionType& type, OpClass op_class) {
  std::string text;
  for (const PlannedOp& op : type.ops) {
    if (op_class_of(op.name.substr(0, op.name.find('.'))) != op_class) continue;
    text += op.treatment == Treatment::kSave      ? 'S'
            : op.treatment == Treatment::kOffload ? 'o'
                                                  : 'r';
  }
  return text.empty() ? "-" : text;
}

// Describes a plan. In "0 2: SrS r", regions 0 and 2 have the same type, with three matmuls and one
// attention in call order. S: kept, r: recomputed, o: kept on the host. "; to the end" means that
// early stop is off. Types are separated by " | ".
std::string decisions(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.types.size(); ++i) {
    if (i > 0) text += " | ";
    for (const PlannedRegion& region : plan.regions) {
      if (static_cast<std::size_t>(region.type) == i) text.append(place(region)).append(" ");
    }
    text.back() = ':';
    text.append(" ").append(kept(plan.types[i], OpClass::kMatmul));
    text.append(" ").append(kept(plan.types[i], OpClass::kAttentionForward));
    if (!plan.types[i].early_stop) text += "; to the end";
    if (!plan.types[i].stored_inputs[Store::kHost].empty()) text += "; inputs on the host";
  }
  return text.empty() ? "no region" : text;
}

struct Row {
  const char* spelling;  // as printed in the table of systems
  const char* typed;
  const char* model;
  const char* decisions;  // expected result of decisions(); empty if the row is rejected
};

constexpr const char* kLlama = "llama_small";  // its matmuls are wq wk wv wo w1 w3 w2
constexpr const char* kWan =
    "wan_small";  // its matmuls are q k v o, cq ck cv co, in, out; all have biases
constexpr const char* kMoe = "moe_small";  // layers 1 and 3 have experts
constexpr const char* kDeepseek =
    "deepseek_small";  // its matmuls are wq wkv_a wkv_b wo; the first block is dense
constexpr const char* kFull = "0 1 2 3: rrrrrrr r";
constexpr const char* kFullNoStop = "0 1 2 3: rrrrrrr r; to the end";
constexpr const char* kFullWan = "0 1 2 3: rrrrrrrrrr rr";
constexpr const char* kAttention = "0 1 2 3: rrrrrrrrrr SS";
constexpr const char* kSelective = "0 1 2 3: SrSrSrS S; to the end";
constexpr const char* kSecond = "1 3: rrrrrrr r";
constexpr const char* kSecondNoStop = "1 3: rrrrrrr r; to the end";
constexpr const char* kFirst = "0 2: rrrrrrr r";
constexpr const char* kPairs = "0..1 2..3: rrrrrrrrrrrrrr rr; to the end";
constexpr const char* kCore =
    "0.attention.core 1.attention.core 2.attention.core 3.attention.core: - r; to the end";

constexpr Row kRows[] = {
    {"fastvideo:none", "fastvideo:none", kWan, "no region"},
    {"fastvideo:full", "fastvideo:full", kWan, kFullWan},
    {"fastvideo:block_skip", "fastvideo:block_skip", kWan, kFullWan},
    {"fastvideo(type=block_skip,n_layer=N)", "fastvideo(type=block_skip,n_layer=2)", kWan,
     "0 2: rrrrrrrrrr rr"},
    {"fastvideo(type=block_skip)", "fastvideo(type=block_skip)", kWan, kFullWan},
    {"fastvideo(type=none)", "fastvideo(type=none)", kWan, "no region"},
    {"fastvideo(type=full)", "fastvideo(type=full)", kWan, kFullWan},
    // Every second matmul is kept, counted over all four blocks and the head. The mode names only
    // attention ops of GPUs, so attention on the CPU is recomputed.
    {"fastvideo:ops", "fastvideo:ops", kLlama, "embed..head: SrSrSrSrSrSrSrSrSrSrSrSrSrSrS rrrr"},
    {"fastvideo(type=ops)", "fastvideo(type=ops)", kLlama,
     "embed..head: SrSrSrSrSrSrSrSrSrSrSrSrSrSrS rrrr"},
    {"fastvideo(type=attn_only)", "fastvideo(type=attn_only)", kWan, kAttention},
    {"fastvideo:ops_block", "fastvideo:ops_block", kWan, kAttention},
    {"fastvideo:attn_only", "fastvideo:attn_only", kWan, kAttention},
    {"fastvideo:attn_only_v1", "fastvideo:attn_only_v1", kWan, kAttention},
    {"fastvideo(selective_checkpointing=F)", "fastvideo(selective_checkpointing=0.5)", kWan, ""},

    {"titan:none", "titan:none", kLlama, "no region"},
    {"titan:full", "titan:full", kLlama, kFullNoStop},
    {"titan:selective", "titan:selective", kLlama, kSelective},
    // wo is excluded because of its name, and wq because it has the same shape as wo. Of the other
    // matmuls wk, wv, w1 and so on, every second one is kept, beginning with wk.
    {"titan:selective(force_recompute_mm_shapes_by_fqns=F)",
     "titan:selective(force_recompute_mm_shapes_by_fqns=[attention.output])", kLlama,
     "0 1 2 3: rSrrSrS S; to the end"},
    {"titan:selective_even", "titan:selective_even", kLlama, "0 1 2 3: rSrSrSr S; to the end"},
    {"titan:selective_2024", "titan:selective_2024", kLlama, "0 1 2 3: SrSrSrS S"},
    {"titan:selective_2025(M)", "titan:selective_2025(llama3)", kLlama, kSelective},
    // The product of w2 is not kept, because recompute skips the last add, which reads it.
    {"titan:SelectiveActivationRematConfig", "titan:SelectiveActivationRematConfig", kLlama,
     "0 1 2 3: SSSSSSr S; to the end"},
    // The experts' first projection is two matmuls. In blocks with experts, scores are multiplied
    // before w2, so backward does not read the result of w2.
    {"titan:SelectiveActivationRematConfig", "titan:SelectiveActivationRematConfig", kMoe,
     "0 2: SSSSSSr S; to the end | 1 3: SSSSSrrrSSr S; to the end"},
    {"titan:FullActivationRematConfig", "titan:FullActivationRematConfig", kLlama, kFullNoStop},
    {"titan:ActivationRematConfig(save_regions=S,recompute_regions=R)",
     "titan:ActivationRematConfig(save_regions=[attention.*],recompute_regions=[attention.wo.*])",
     kLlama, "0 1 2 3: SSSrrrr S; to the end"},
    {"titan:ActivationRematConfig(save_regions=S)",
     "titan:ActivationRematConfig(save_regions=[attention.wo.linear])", kLlama,
     "0 1 2 3: rrrSrrr r; to the end"},
    {"titan:RegionAC(save_regions=S)", "titan:RegionAC(save_regions=[feed_forward.*])", kLlama,
     "0 1 2 3: rrrrSSr r; to the end"},
    {"titan:SelectiveAC", "titan:SelectiveAC", kLlama, ""},
    {"titan(mode=none)", "titan(mode=none)", kLlama, "no region"},
    {"titan(mode=full)", "titan(mode=full)", kLlama, kFullNoStop},
    {"titan(mode=selective)", "titan(mode=selective)", kLlama, kSelective},
    {"titan(mode=selective,selective_ac_option=op)", "titan(mode=selective,selective_ac_option=op)",
     kLlama, kSelective},
    {"titan(mode=selective,selective_ac_option=0)", "titan(mode=selective,selective_ac_option=0)",
     kLlama, kFullNoStop},
    {"titan(mode=selective,selective_ac_option=N)", "titan(mode=selective,selective_ac_option=2)",
     kLlama, kSecondNoStop},
    {"titan(selective_ac_option=0)", "titan(selective_ac_option=0)", kLlama, kFullNoStop},
    {"titan(selective_ac_option=op)", "titan(selective_ac_option=op)", kLlama, kSelective},
    {"titan(selective_ac_option=N)", "titan(selective_ac_option=2)", kLlama, kSecondNoStop},
    // A block with experts has two regions, one for attention and one for the experts. A dense
    // block is one region. The gate and grouped matmuls are not counted, so the first three matmuls
    // are w1, w3 and w2 of the shared expert.
    {"titan:split_flex_compiled", "titan:split_flex_compiled", kMoe,
     "0 2: SrSrSrS S; to the end | 1.attention 3.attention: SrSr S; to the end | 1.moe 3.moe: "
     "rrrrSrS -; to the end"},
    {"titan:split_flex_eager", "titan:split_flex_eager", kMoe,
     "0.attention 1.attention 2.attention 3.attention: rrrr r; to the end | 0.ffn 2.ffn: SrS -; to "
     "the end | 1.moe 3.moe: rrrrSrS -; to the end"},
    {"titan(memory_policy=default)", "titan(memory_policy=default)", kLlama, "0 1 2 3: SSSSSSS S"},
    {"titan(memory_policy=eager)", "titan(memory_policy=eager)", kLlama, "0 1 2 3: SrSrSrS S"},
    {"titan(memory_policy=full)", "titan(memory_policy=full)", kLlama, kFull},
    {"titan(memory_policy=full,full_recompute_save_ops=S)",
     "titan(memory_policy=full,full_recompute_save_ops=*.ffn::aten::mm#3)", kLlama,
     "0 1 2 3: rrrrrrS r"},
    {"titan(full_recompute_save_ops=S)", "titan(full_recompute_save_ops=matmul)", kLlama, ""},
    {"titan(memory_policy=sac_and_offload)", "titan(memory_policy=sac_and_offload)", kLlama,
     "0 1 2 3: SSoSooS S; inputs on the host"},
    {"titan(memory_policy=auto_perf_maxing)", "titan(memory_policy=auto_perf_maxing)", kLlama, ""},
    {"titan:memory_budget", "titan:memory_budget", kLlama, ""},
    {"titan(mode=memory_budget)", "titan(mode=memory_budget)", kLlama, ""},
    {"titan:flux", "titan:flux", kWan, kFullWan},

    {"torchtune(enable_activation_checkpointing=true)",
     "torchtune(enable_activation_checkpointing=true)", kLlama, kFull},
    {"torchtune(enable_activation_checkpointing=false)",
     "torchtune(enable_activation_checkpointing=false)", kLlama, "no region"},
    {"torchtune(ac_mode=full)", "torchtune(ac_mode=full)", kLlama, kFull},
    {"torchtune(enable_activation_checkpointing=true,ac_option=N)",
     "torchtune(enable=true,ac_option=2)", kLlama, kFull},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=none)",
     "torchtune(enable=false,ac_mode=none)", kLlama, "no region"},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=selective)",
     "torchtune(enable=false,ac_mode=selective)", kLlama, ""},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=full)",
     "torchtune(enable_activation_checkpointing=false,ac_mode=full)", kLlama, kFull},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=0)",
     "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=0)", kLlama,
     kFull},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=N)",
     "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=2)", kLlama,
     "1 3: rrrrrrr r"},
    {"torchtune(ac_mode=selective)", "torchtune(ac_mode=selective)", kLlama, ""},
    {"torchtune(ac_mode=selective,ac_option=0)", "torchtune(ac_mode=selective,ac_option=0)", kLlama,
     kFull},
    {"torchtune(ac_mode=selective,ac_option=op)", "torchtune(ac_mode=selective,ac_option=op)",
     kLlama, ""},
    {"torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=op)",
     "torchtune(enable_activation_checkpointing=false,ac_mode=selective,ac_option=op)", kLlama, ""},
    {"torch_remat(save=S)", "torch_remat(save=[ffn])", kLlama, "0 1 2 3: rrrrSSS r; to the end"},
    {"torchtune(ac_mode=selective,ac_option=N)", "torchtune(ac_mode=selective,ac_option=2)", kLlama,
     kSecond},
    {"torchtune(enable_activation_checkpointing=true,ac_mode=M)",
     "torchtune(enable_activation_checkpointing=true,ac_mode=full)", kLlama, ""},
    {"torchtune(enable_activation_checkpointing=true,ac_mode=M,ac_option=N)",
     "torchtune(enable_activation_checkpointing=true,ac_mode=selective,ac_option=2)", kLlama, ""},
    {"torchtune(ac_mode=M)", "torchtune(ac_mode=ful)", kLlama, ""},
    {"torchtune(ac_mode=none)", "torchtune(ac_mode=none)", kLlama, "no region"},
    {"torchtune(ac_mode=none,ac_option=N)", "torchtune(ac_mode=none,ac_option=2)", kLlama,
     "no region"},
    {"torchtune(ac_mode=full,ac_option=N)", "torchtune(ac_mode=full,ac_option=2)", kLlama, kFull},
    {"torchtune(enable_activation_offloading=true)", "torchtune(enable_activation_offloading=true)",
     kLlama, ""},
    {"torchtune(enable_activation_checkpointing=true,enable_activation_offloading=true)",
     "torchtune(enable_activation_checkpointing=true,enable_activation_offloading=true)", kLlama,
     "0 1 2 3: rrrrrrr r; inputs on the host"},

    {"modalities:none", "modalities:none", kLlama, "no region"},
    {"modalities:full", "modalities:full", kLlama, kFull},
    {"modalities:selective_layer", "modalities:selective_layer", kLlama, ""},
    {"modalities:selective_layer(ac_freq=N)", "modalities:selective_layer(ac_freq=2)", kLlama,
     kSecond},
    {"modalities:selective_op", "modalities:selective_op()", kLlama, ""},
    {"modalities:selective_op(K)", "modalities:selective_op(ops.aten.mm.default)", kLlama,
     "0 1 2 3: SrSrSrS r"},

    {"modalities(ac_variant=full_activation_checkpointing)",
     "modalities(ac_variant=full_activation_checkpointing,layers_fqn=transformer.h)", kLlama,
     kFull},
    {"modalities(ac_variant=selective_layer_activation_checkpointing,ac_freq=N)",
     "modalities(ac_variant=selective_layer_activation_checkpointing,ac_freq=2)", kLlama, kSecond},
    {"modalities(ac_variant=selective_op_activation_checkpointing,save_ops_keys=K)",
     "modalities(ac_variant=selective_op_activation_checkpointing,"
     "save_ops_keys=[ops.aten.mm.default])",
     kLlama, "0 1 2 3: SrSrSrS r"},

    {"modalities:fsdp1(activation_checkpointing_modules=[GPT2Block])",
     "modalities:fsdp1(activation_checkpointing_modules=[GPT2Block])", kLlama, kFull},
    {"modalities:fsdp1(activation_checkpointing_modules=M)",
     "modalities:fsdp1(activation_checkpointing_modules=[FFN])", kLlama, ""},

    {"diffusers:none", "diffusers:none", kWan, "no region"},
    {"diffusers:enable_gradient_checkpointing", "diffusers:enable_gradient_checkpointing", kWan,
     kFullWan},
    {"diffusers(every=N)", "diffusers(every=2)", kLlama, kFirst},
    {"diffusers(skip_every=N)", "diffusers(skip_every=2)", kLlama, kSecond},
    {"diffusers(skip_layers=L)", "diffusers(skip_layers=[1,3])", kLlama, kFirst},
    {"diffusers(gradient_checkpointing_func=F)", "diffusers(gradient_checkpointing_func=mine)",
     kLlama, ""},

    {"megatron:none", "megatron:none", kLlama, "no region"},
    {"megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=N)",
     "megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers=2)", kLlama,
     kPairs},
    {"megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=N)",
     "megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers=2)", kLlama,
     "0 1: rrrrrrr r; to the end"},
    {"megatron(recompute_granularity=selective,recompute_modules=M)",
     "megatron(recompute_granularity=selective,recompute_modules=[mlp])", kLlama,
     "0.ffn 1.ffn 2.ffn 3.ffn: rrr -; to the end"},
    {"megatron(recompute_modules=[gdn_norm_out])", "megatron(recompute_modules=[gdn_norm_out])",
     kLlama, ""},
    {"megatron(recompute_modules=[gdp_in_proj])", "megatron(recompute_modules=[gdp_in_proj])",
     kLlama, ""},
    {"megatron(recompute_modules=[gdp_qkv])", "megatron(recompute_modules=[gdp_qkv])", kLlama, ""},
    {"megatron(recompute_modules=[mhc])", "megatron(recompute_modules=[mhc])", kLlama, ""},
    {"megatron(recompute_granularity=selective)", "megatron(recompute_granularity=selective)",
     kLlama, kCore},
    {"megatron(recompute_modules=M)", "megatron(recompute_modules=[moe])", kMoe,
     "1.moe 3.moe: rrrrrrr -; to the end"},
    // The policy keeps wq and wkv_b, but not wkv_a. Results that backward does not read are not
    // kept, such as the product of wo.
    {"megatron(recompute_modules=M)", "megatron(recompute_modules=[mla_up_proj])", kDeepseek,
     "0: rSrrSSr S; to the end | 1 2 3: rSrrrSSSSSr S; to the end"},
    {"megatron:recompute_activations", "megatron:recompute_activations", kLlama, kCore},
    {"megatron:distribute_saved_activations", "megatron:distribute_saved_activations", kLlama, ""},
    {"megatron(offload_modules=M)", "megatron(offload_modules=[core_attn])", kLlama,
     "0 1 2 3: rrorSSr S"},
    {"megatron(offload_modules=[qkv_linear])", "megatron(offload_modules=[qkv_linear])", kLlama,
     "0 1 2 3: rrSrSSr S"},
    // The mode offloads the tokens that are gathered for the experts. They are not the result of a
    // matmul, so no matmul is marked o.
    {"megatron(offload_modules=[fused_group_mlp])", "megatron(offload_modules=[fused_group_mlp])",
     kMoe, "0 2: rrSrSSr S | 1 3: rrSrrSSrSSr S"},
    {"megatron(offload_modules=[gdp_qkv])", "megatron(offload_modules=[gdp_qkv])", kLlama, ""},

    {"maxtext:none", "maxtext:none", kLlama, "no region"},
    {"maxtext:full", "maxtext:full", kLlama, kFull},
    {"maxtext:save_out_proj", "maxtext:save_out_proj", kLlama, "0 1 2 3: rrrSrrr r"},
    // The matmuls of query and key are recomputed, because the results of the rotary embedding are
    // kept instead.
    {"maxtext:save_qkv_proj", "maxtext:save_qkv_proj", kLlama, "0 1 2 3: rrSrrrr r"},
    {"maxtext:save_dot_except_mlp", "maxtext:save_dot_except_mlp", kLlama, "0 1 2 3: rrSSrrr r"},
    {"maxtext:save_dot_except_mlpwi", "maxtext:save_dot_except_mlpwi", kLlama,
     "0 1 2 3: rrSSrrS r"},
    {"maxtext:save_dot_with_context_except_mlp", "maxtext:save_dot_with_context_except_mlp", kLlama,
     "0 1 2 3: rrSSrrr S"},
    // This model has no gate, so mlpwo is the second matmul of the feed-forward.
    {"maxtext:save_dot_except_mlpwi", "maxtext:save_dot_except_mlpwi", kWan,
     "0 1 2 3: rrSSrrSSrS rr"},
    {"maxtext:minimal", "maxtext:minimal", kLlama, "0 1 2 3: rrSSSSS r"},
    // In a block with experts, the matmuls of the router's gate and of the routed experts come
    // first, then those of the shared expert. Of all these, only the matmuls of the shared expert
    // are kept.
    {"maxtext:minimal", "maxtext:minimal", kMoe, "0 2: rrSSSSS r | 1 3: rrSSrrrrSSS r"},
    {"maxtext:minimal", "maxtext:minimal", kDeepseek, "0: rrrSSSS r | 1 2 3: rrrSrrrrSSS r"},
    {"maxtext:minimal_with_context", "maxtext:minimal_with_context", kLlama, "0 1 2 3: rrSSSSS S"},
    {"maxtext:minimal_flash", "maxtext:minimal_flash", kLlama, "0 1 2 3: rrSSSSS S"},
    {"maxtext:minimal_with_quantization", "maxtext:minimal_with_quantization", kLlama,
     "0 1 2 3: rrSSSSS r"},
    {"maxtext:minimal_with_context_and_quantization",
     "maxtext:minimal_with_context_and_quantization", kLlama, "0 1 2 3: rrSSSSS S"},
    {"maxtext:custom", "maxtext:custom", kLlama, ""},
    {"maxtext:custom(T)",
     "maxtext:custom(moe_mlpwi_0=offload,moe_mlpwi_1=device,out_proj=device,context=remat)", kMoe,
     "0 2: rrrSrrr r | 1 3: rrrSroSrrrr r"},
    {"maxtext:custom(T)", "maxtext:custom(moe_mlpwo=offload,kv_wa_proj=device)", kDeepseek,
     "0: rSrrrrr r | 1 2 3: rSrrrrrorrr r"},
    {"maxtext(remat_policy_for_vit=P)", "maxtext(remat_policy_for_vit=minimal)", kLlama, ""},
    {"maxtext:minimal_offloaded", "maxtext:minimal_offloaded", kLlama, "0 1 2 3: rroooor r"},
    {"maxtext:qkv_proj_offloaded", "maxtext:qkv_proj_offloaded", kLlama, "0 1 2 3: rrorrrr r"},

    {"deepspeed:checkpoint", "deepspeed:checkpoint", kLlama, kFullNoStop},
    {"deepspeed(activation_checkpoint_interval=0)", "deepspeed(activation_checkpoint_interval=0)",
     kLlama, "no region"},
    {"deepspeed(activation_checkpoint_interval=N)", "deepspeed(activation_checkpoint_interval=2)",
     kLlama, kPairs},
    {"deepspeed:cpu_checkpointing", "deepspeed:cpu_checkpointing", kLlama,
     "0 1 2 3: rrrrrrr r; to the end; inputs on the host"},
    {"deepspeed:partition_activations", "deepspeed:partition_activations", kLlama, ""},
    {"deepspeed:contiguous_memory_optimization", "deepspeed:contiguous_memory_optimization", kLlama,
     ""},
    {"huggingface:none", "huggingface:none", kLlama, "no region"},
    {"huggingface(gradient_checkpointing=false)", "transformers(gradient_checkpointing=False)",
     kLlama, "no region"},
    {"huggingface(gradient_checkpointing=true)", "transformers(gradient_checkpointing=True)",
     kLlama, kFull},
    {"huggingface:gradient_checkpointing", "huggingface:gradient_checkpointing", kLlama, kFull},
    {"huggingface(offload=true)", "huggingface(offload=true)", kLlama,
     "0 1 2 3: rrrrrrr r; inputs on the host"},
    {"huggingface:activation_checkpointing", "huggingface:activation_checkpointing", kLlama, kFull},
    {"huggingface(every_n_layers=N)", "huggingface(every_n_layers=1)", kLlama, kFull},
    {"huggingface(every_n_layers=N)", "huggingface(every_n_layers=2)", kLlama, kFirst},
    {"huggingface(every_n_layers=N,offload=true)", "huggingface(every_n_layers=2,offload=true)",
     kLlama, "0 2: rrrrrrr r; inputs on the host"},
    {"axolotl:none", "axolotl:none", kLlama, "no region"},
    {"axolotl(gradient_checkpointing=false)", "axolotl(gradient_checkpointing=false)", kLlama,
     "no region"},
    {"axolotl(gradient_checkpointing=true)", "axolotl(gradient_checkpointing=true)", kLlama, kFull},
    {"axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)",
     "axolotl(gradient_checkpointing=true,activation_offloading=hidden_states)", kLlama,
     "0 1 2 3: rrrrrrr r; inputs on the host"},
    {"axolotl(gradient_checkpointing=true,selective_checkpointing=true)",
     "axolotl(gradient_checkpointing=true,selective_checkpointing=true)", kLlama,
     "0 1 2 3: rrrrrrr S"},
    {"axolotl(gradient_checkpointing=true,selective_checkpointing.offload=true)",
     "axolotl(gradient_checkpointing=true,selective_checkpointing.offload=true)", kLlama,
     "0 1 2 3: rrrrrrr o"},
    {"axolotl(gradient_checkpointing=true,selective_checkpointing.save=S)",
     "axolotl(gradient_checkpointing=true,selective_checkpointing.save=[aten::mm])", kLlama, ""},
    {"axolotl(selective_checkpointing=true)", "axolotl(selective_checkpointing=true)", kLlama, ""},
    {"automodel:full", "automodel:full", kLlama, kFull},
    // Every second matmul is kept. Grouped matmuls are counted too, but the matmul of the gate is
    // not.
    {"automodel:selective", "automodel:selective", kMoe, "0 2: SrSrSrS S | 1 3: SrSrrSrSrSr S"},
    {"veomni(recompute_last_n_layers=N)", "veomni(recompute_last_n_layers=2)", kLlama,
     "2 3: rrrrrrr r"},
    {"veomni(recompute_last_n_layers=N,selective_n_layers=M)",
     "veomni(recompute_last_n_layers=2,selective_n_layers=1)", kLlama, ""},
    {"pytorch:checkpoint", "pytorch:checkpoint", kLlama, kFull},
    {"pytorch:checkpoint_reentrant", "pytorch:checkpoint_reentrant", kLlama, kFullNoStop},
    {"pytorch:selective_1", "pytorch:selective_1", kLlama, "0 1 2 3: SSSSSSS r"},
    {"pytorch:selective_2", "pytorch:selective_2", kLlama, "0 1 2 3: SSSSSSS S"},
};

TEST_CASE(
    "on a model, each row of the table of systems chooses the same ops as the system's own code") {
  std::map<std::string, PolicyMatrix> models;
  for (const MatrixModel& model : matrix_models()) models.try_emplace(model.preset, model);
  std::set<std::string_view> tested;
  for (const Row& row : kRows) {
    CAPTURE(row.typed, row.model);
    tested.insert(row.spelling);
    const PolicyMatrix& model = models.at(row.model);
    const Plan* plan = model.plan_of(row.typed);
    CHECK((plan == nullptr) == std::string_view(row.decisions).empty());
    if (plan == nullptr) {
      CHECK_THAT(model.refusal(row.typed), Catch::Contains(" is not supported: "));
    } else {
      CHECK(decisions(*plan) == row.decisions);
    }
  }
  for (const SystemEntry& entry : system_entries()) {
    CAPTURE(entry.spelling);
    CHECK(tested.contains(entry.spelling));
  }
}

// Returns "scope op" for each op that is recomputed because an entry of a list matches it.
std::set<std::string> listed(const Plan& plan) {
  std::set<std::string> names;
  for (const RegionType& type : plan.types) {
    for (const PlannedOp& op : type.ops) {
      if (op.treatment == Treatment::kRecompute && op.reason.starts_with("matches ")) {
        names.insert(op.scope + " " + op.name);
      }
    }
  }
  return names;
}

// The function qkv_up_proj_and_rope_apply in Megatron runs both up projections and both rotary
// embeddings, and concatenates their results into query and key.
TEST_CASE(
    "Megatron's recompute of mla_up_proj also repeats the rotary embedding of query and key") {
  const std::set<std::string> always = {"attention.query aten::mm", "attention.query aten::cat",
                                        "attention.kv_up aten::mm", "attention.kv_up aten::cat",
                                        "attention.kv_up aten::constant_pad_nd"};
  for (const MatrixModel& model : matrix_models()) {
    if (model.preset != kDeepseek) continue;
    std::set<std::string> expected = always;
    for (const char* scope : {"attention.query", "attention.kv_down"}) {
      const bool is_fused = model.dimensions.contains("fused_ops");
      for (const char* op : {"aten::mul.Tensor", "aten::sub.Tensor", "aten::add.Tensor",
                             "aten::stack", "rematch::rope"}) {
        if (std::string_view(op).starts_with("rematch") != is_fused) continue;
        expected.insert(std::string(scope) + " " + op);
      }
    }
    const PolicyMatrix matrix(model);
    CHECK(listed(*matrix.plan_of("megatron(recompute_modules=[mla_up_proj])")) == expected);
  }
}

TEST_CASE("recompute_modules([moe_act]) applies to the same models with fused and with eager ops") {
  const std::vector<MatrixModel> models = matrix_models();
  const std::size_t num_presets = models.size() / 2;
  for (std::size_t i = 0; i < num_presets; ++i) {
    CAPTURE(models[i].preset);
    const PolicyMatrix eager(models[i]);
    const PolicyMatrix fused(models[i + num_presets]);
    CHECK(eager.refusal("recompute_modules([moe_act])").empty() ==
          fused.refusal("recompute_modules([moe_act])").empty());
  }
}

}  // namespace
}  // namespace rematch::testing
