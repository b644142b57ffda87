// Some layers are recomputed whole, the others are not touched.
#include "policies/catalogue/families.h"

namespace rematch {
namespace {

// `n == 1` chooses all layers (kSkipNth: none), and says so.
template <BlockChoice::Kind kKind>
Policy every_nth(const std::vector<int>& arguments) {
  Policy policy;
  policy.blocks.kind = kKind;
  policy.blocks.n = arguments[0];
  policy.no_effect_is_intended = arguments[0] == 1;
  return policy;
}

template <BlockChoice::Kind kKind>
Policy stretch(const std::vector<int>& arguments) {
  Policy policy;
  policy.blocks.kind = kKind;
  policy.blocks.n = arguments[0];
  return policy;
}

template <BlockChoice::Kind kKind>
Policy listed(const std::vector<int>& arguments) {
  Policy policy;
  policy.blocks.kind = kKind;
  policy.blocks.indices = arguments;
  policy.no_effect_is_intended = arguments.empty();
  return policy;
}

}  // namespace

const std::vector<PolicyFamilyEntry>& layer_policies() {
  using Kind = BlockChoice::Kind;
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"nth_last", "(N)", "recompute the last layer of each group of N: (i + 1) % N == 0",
        "torchtune and modalities selective layer, torchtitan's retired layer mode"},
       PolicyArguments::kCount,
       every_nth<Kind::kNthLast>},
      {{"nth_first", "(N)", "recompute the first layer of each group of N: i % N == 0",
        "FastVideo block_skip, diffusers"},
       PolicyArguments::kCount,
       every_nth<Kind::kNthFirst>},
      {{"skip_nth", "(N)", "recompute all layers but every N-th: i % N != 0",
        "diffusers discussion, inverse interval"},
       PolicyArguments::kCount,
       every_nth<Kind::kSkipNth>},
      {{"first_n", "(N)", "recompute the first N layers", "Megatron-LM block"},
       PolicyArguments::kCount,
       stretch<Kind::kFirst>},
      {{"last_n", "(N)", "recompute the last N layers", "VeOmni"},
       PolicyArguments::kCount,
       stretch<Kind::kLast>},
      {{"skip_list", "([I,...])", "recompute all layers but those listed", "diffusers discussion"},
       PolicyArguments::kList,
       listed<Kind::kExcept>},
      {{"only_list", "([I,...])", "recompute the layers listed", "diffusers discussion"},
       PolicyArguments::kList,
       listed<Kind::kOnly>},
  };
  return entries;
}

}  // namespace rematch
