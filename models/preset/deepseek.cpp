#include "models/preset/family.h"
#include "policies/base/rejected.h"

namespace rematch::preset {
namespace {

Checked settle_deepseek(ModelSpec& spec, const Dimensions& /*given*/) {
  if (Checked rejected = require_fused_loss(spec)) return rejected;
  if (spec.at("rope_dim") % 2 != 0) {
    return Rejected{"rope_dim " + std::to_string(spec.at("rope_dim")) +
                    " is odd; rotary embedding needs an even width"};
  }
  const std::int64_t query_dim = spec.at("nope_dim") + spec.at("rope_dim");
  if (spec.at("value_dim") > query_dim) {
    return Rejected{"value_dim " + std::to_string(spec.at("value_dim")) +
                    " is more than nope_dim + rope_dim = " + std::to_string(query_dim) +
                    ", the padded width of values"};
  }
  if (spec.at("dense_layers") > spec.at("layers")) {
    return Rejected{"dense_layers " + std::to_string(spec.at("dense_layers")) +
                    " is more than layers " + std::to_string(spec.at("layers"))};
  }
  return require_experts(spec);
}

}  // namespace

const Family& deepseek_family() {
  static const Dimensions full = {
      {"layers", 27},       {"dim", 2048},      {"heads", 16},      {"latent_dim", 512},
      {"nope_dim", 128},    {"rope_dim", 64},   {"value_dim", 128}, {"ffn", 10'944},
      {"dense_layers", 1},  {"experts", 64},    {"top_k", 6},       {"expert_ffn", 1408},
      {"shared_ffn", 2816}, {"vocab", 102'400}, {"batch", 4},       {"tokens", 4096}};
  static const Dimensions small = {
      {"layers", 6},       {"dim", 128},     {"heads", 4},      {"latent_dim", 64},
      {"nope_dim", 32},    {"rope_dim", 16}, {"value_dim", 32}, {"ffn", 352},
      {"dense_layers", 1}, {"experts", 8},   {"top_k", 3},      {"expert_ffn", 64},
      {"shared_ffn", 128}, {"vocab", 256},   {"batch", 2},      {"tokens", 128}};
  static const Family family = {
      {kLayers,
       kDim,
       {"heads", "attention heads", 1, kMaxCount},
       {"latent_dim", "width of the latent from which keys and values are projected", 1, kMaxWidth},
       {"nope_dim", "part of a query head without rotary embedding", 1, kMaxCount},
       {"rope_dim", "part of a query head with rotary embedding; must be even", 2, kMaxCount},
       {"value_dim", "width of a value head; at most nope_dim + rope_dim", 1, kMaxCount},
       kFfn,
       {"dense_layers", "number of blocks at the start that have a feed-forward instead of experts",
        0, kMaxLayers},
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
      {{{"deepseek_v3_16b",
         "DeepSeek-V3 16B: 27 layers, dim 2048, latent attention, 64 experts, 4 x 4096 tokens"},
        full},
       {{"deepseek_small",
         "small DeepSeek-V3 on bytes: 6 layers, dim 128, 8 experts, 2 x 128 tokens"},
        small}},
      settle_deepseek,
      /*video=*/std::nullopt,
      {"tp", "sp", "ulysses", "ep", "balanced_routing", "fsdp", "pp", "interleave", "zb",
       "first_layers", "last_layers"}};
  return family;
}

}  // namespace rematch::preset
