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

// FastVideo's mode `ops` as it ships: one region, dispatcher names taken literally, one count of
// matmuls over the whole model. Biased linears are aten::addmm, which it does not list.
Policy ops_root(const std::vector<int>&) {
  Policy policy = root({});
  for (const char* op :
       {"_c10d_functional::reduce_scatter_tensor", "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_flash_attention"}) {
    policy.save.push_back({"", op, std::nullopt});
  }
  policy.alternate = Alternation{{{"", "aten::mm", std::nullopt}}, {}, Alternation::Keep::kOdd};
  policy.exact_names = true;
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
      {{"ops_root", "",
        "one region for the whole model; keep every second mm and SDPA by its exact names",
        "FastVideo ops, as shipped"},
       PolicyArguments::kNoArguments,
       ops_root},
  };
  return entries;
}

}  // namespace rematch
