// Every block the same way, nothing kept inside.
#include "policies/catalogue/families.h"

namespace rematch {
namespace {

Policy none(const std::vector<int>&) {
  Policy policy;
  policy.blocks.kind = BlockChoice::Kind::kNone;
  policy.no_effect_is_intended = true;
  return policy;
}

Policy full(const std::vector<int>&) {
  Policy policy;
  policy.no_effect_is_intended = true;
  return policy;
}

Policy full_nostop(const std::vector<int>&) {
  Policy policy;
  policy.early_stop = false;
  return policy;
}

}  // namespace

const std::vector<PolicyFamilyEntry>& whole_block_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"none", "", "no checkpointing: everything that backward needs is kept", "the reference"},
       PolicyArguments::kNoArguments,
       none},
      {{"full", "", "recompute every block, up to the last tensor that backward needs",
        "FastVideo, torchtune, modalities, diffusers"},
       PolicyArguments::kNoArguments,
       full},
      {{"full_reentrant", "", "recompute every block to its end, as reentrant checkpointing does",
        "DeepSpeed, Megatron-LM, torch.utils.checkpoint(use_reentrant=True)"},
       PolicyArguments::kNoArguments,
       full_nostop},
      {{"full_nostop", "", "recompute every block to its end, needed or not", "torchtitan full"},
       PolicyArguments::kNoArguments,
       full_nostop},
  };
  return entries;
}

}  // namespace rematch
