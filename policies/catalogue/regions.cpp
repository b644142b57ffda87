// Regions other than one a block.
#include "policies/catalogue/families.h"

namespace rematch {
namespace {

Policy segments(const std::vector<int>& arguments) {
  Policy policy;
  policy.regions.kind = RegionChoice::Kind::kSegments;
  policy.regions.n = arguments[0];
  policy.no_effect_is_intended = arguments[0] == 1;  // a segment of one is a block
  return policy;
}

Policy root(const std::vector<int>&) {
  Policy policy;
  policy.regions.kind = RegionChoice::Kind::kRoot;
  return policy;
}

}  // namespace

const std::vector<PolicyFamilyEntry>& region_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"segments", "(N)", "recompute N layers at a time, keep the input of each segment",
        "Megatron-LM uniform, DeepSpeed interval"},
       PolicyArguments::kCount,
       segments},
      {{"root", "", "one region for the whole model but the loss", "FastVideo ops"},
       PolicyArguments::kNoArguments,
       root},
  };
  return entries;
}

}  // namespace rematch
