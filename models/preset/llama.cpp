#include "models/preset/family.h"
#include "policies/base/rejected.h"

namespace rematch::preset {
namespace {

Dimensions llama(std::int64_t layers, std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                 std::int64_t ffn, std::int64_t vocab) {
  return {{"layers", layers},     {"dim", dim},     {"heads", heads},
          {"kv_heads", kv_heads}, {"ffn", ffn},     {"vocab", vocab},
          {"batch", 1},           {"tokens", 8192}, {"tied", 0}};
}

Checked settle_llama(ModelSpec& spec, const Dimensions& /*given*/) {
  if (Checked rejected = require_fused_loss(spec)) return rejected;
  if (Checked rejected = require_rotary_heads(spec)) return rejected;
  if (Checked rejected = require_divides(spec, "kv_heads", "heads")) return rejected;
  const std::int64_t frozen = spec.option("frozen_layers");
  if (frozen > spec.at("layers")) {
    return Rejected{"frozen_layers " + std::to_string(frozen) + " is more than layers " +
                    std::to_string(spec.at("layers"))};
  }
  if (frozen > 0 && spec.option("adapter_rank") > 0) {
    return Rejected{"frozen_layers " + std::to_string(frozen) + " and adapter_rank " +
                    std::to_string(spec.option("adapter_rank")) +
                    " cannot be combined: with adapters every other weight is frozen; give one of "
                    "the two"};
  }
  if (spec.option("packed_weights") == 1 && spec.option("adapter_rank") > 0) {
    return Rejected{"packed_weights and adapter_rank " +
                    std::to_string(spec.option("adapter_rank")) +
                    " cannot be combined: every adapter belongs to a weight of its own; give one "
                    "of the two"};
  }
  return std::nullopt;
}

}  // namespace

// The sizes of llama_small must not change, because golden files depend on them. The activations
// that its blocks save take more memory than its parameters, head and loss, so checkpointing lowers
// the peak.
const Family& llama_family() {
  static const Family family = {
      {kLayers,
       kDim,
       kHeads,
       {"kv_heads", "key and value heads; must divide heads", 1, kMaxCount},
       kFfn,
       kVocab,
       kSequences,
       kMicroBatches,
       kGradientDtype,
       kTokens,
       {"tied", "1: embedding and head share one weight", 0, 1},
       kDropout,
       kFusedOps,
       kPackedWeights,
       kKeptLogits,
       {"frozen_layers",
        "number of blocks at the start that are frozen, together with the embedding; 0: none", 0,
        kMaxLayers, /*is_option=*/true},
       {"adapter_rank",
        "rank of low-rank adapters, which are then the only trained weights; 0: none", 0, kMaxCount,
        /*is_option=*/true}},
      {{{"llama3_1b", "Llama 3.2 1B: 16 layers, dim 2048, tied head, 1 x 8192 tokens"},
        with(llama(16, 2048, 32, 8, 8192, 128'256), {{"tied", 1}})},
       {{"llama3_3b", "Llama 3.2 3B: 28 layers, dim 3072, tied head, 1 x 8192 tokens"},
        with(llama(28, 3072, 24, 8, 8192, 128'256), {{"tied", 1}})},
       {{"llama3_8b", "Llama 3 8B: 32 layers, dim 4096, 1 x 8192 tokens"},
        llama(32, 4096, 32, 8, 14'336, 128'256)},
       {{"llama3_70b", "Llama 3 70B: 80 layers, dim 8192, 1 x 8192 tokens"},
        llama(80, 8192, 64, 8, 28'672, 128'256)},
       {{"llama3_405b", "Llama 3 405B: 126 layers, dim 16384, 1 x 8192 tokens"},
        llama(126, 16'384, 128, 8, 53'248, 128'256)},
       {{"llama_small", "small Llama 3 on bytes: 8 layers, dim 128, 2 x 128 tokens"},
        with(llama(8, 128, 4, 2, 352, 256), {{"batch", 2}, {"tokens", 128}})}},
      settle_llama,
      /*video=*/std::nullopt,
      {"tp", "sp", "ulysses", "cp", "ring", "fsdp", "pp", "interleave", "zb", "first_layers",
       "last_layers"}};
  return family;
}

}  // namespace rematch::preset
