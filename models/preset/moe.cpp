#include "models/preset/family.h"

namespace rematch::preset {
namespace {

Checked settle_moe(ModelSpec& spec, const Dimensions& /*given*/) {
  if (Checked rejected = require_fused_loss(spec)) return rejected;
  if (Checked rejected = require_rotary_heads(spec)) return rejected;
  if (Checked rejected = require_divides(spec, "kv_heads", "heads")) return rejected;
  return require_experts(spec);
}

}  // namespace

const Family& moe_family() {
  static const Dimensions full = {{"layers", 48},       {"dim", 5120},      {"heads", 40},
                                  {"kv_heads", 8},      {"ffn", 16'384},    {"moe_every", 1},
                                  {"experts", 16},      {"top_k", 1},       {"expert_ffn", 8192},
                                  {"shared_ffn", 8192}, {"vocab", 202'048}, {"batch", 1},
                                  {"tokens", 8192}};
  static const Dimensions small = {
      {"layers", 8},    {"dim", 128},   {"heads", 4},   {"kv_heads", 2},    {"ffn", 352},
      {"moe_every", 2}, {"experts", 6}, {"top_k", 2},   {"expert_ffn", 96}, {"shared_ffn", 128},
      {"vocab", 256},   {"batch", 2},   {"tokens", 128}};
  static const Family family = {
      {kLayers,
       kDim,
       kHeads,
       {"kv_heads", "key and value heads; must divide heads", 1, kMaxCount},
       kFfn,
       {"moe_every", "every n-th block has experts instead of a feed-forward", 1, kMaxLayers},
       kExperts,
       kTopK,
       kExpertFfn,
       kSharedFfn,
       kSkew,
       kVocab,
       kSequences,
       kMicroBatches,
       kGradientDtype,
       kTokens,
       kDropout,
       kFusedOps,
       kPackedWeights,
       kKeptLogits},
      {{{"llama4_17bx16e", "Llama 4 17B x 16 experts: 48 layers, dim 5120, top 1, 1 x 8192 tokens"},
        full},
       {{"moe_small",
         "small Llama 4 on bytes: 8 layers, dim 128, 6 experts in every 2nd layer, 2 x 128 tokens"},
        small}},
      settle_moe,
      /*video=*/std::nullopt,
      {"tp", "sp", "ulysses", "ep", "balanced_routing", "fsdp", "pp", "interleave", "zb",
       "first_layers", "last_layers"}};
  return family;
}

}  // namespace rematch::preset
