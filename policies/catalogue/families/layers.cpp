// Policies that recompute whole layers: all of them, or some by their index.
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

using Kind = BlockChoice::Kind;

Policy full_to_the_end() {
  Policy policy;
  policy.early_stop = false;
  return policy;
}

Policy first_or_last(Kind kind, int n) {
  Policy policy;
  policy.blocks.kind = kind;
  policy.blocks.n = n;
  return policy;
}

// With N = 1, nth_first and nth_last choose every layer, and skip_nth chooses none. The user then
// wants the plan of policy `full` or `none`, so this plan is not rejected.
Policy every_nth(Kind kind, int n) {
  Policy policy = first_or_last(kind, n);
  policy.no_effect_is_intended = n == 1;
  return policy;
}

Policy listed(Kind kind, const std::vector<int>& layers) {
  Policy policy;
  policy.blocks.kind = kind;
  policy.blocks.indices = layers;
  policy.no_effect_is_intended = layers.empty();
  return policy;
}

}  // namespace

Policy none_policy() {
  Policy policy;
  policy.name = kNonePolicy;
  policy.blocks.kind = Kind::kNone;
  policy.no_effect_is_intended = true;
  return policy;
}

Policy full_policy() {
  Policy policy;
  policy.name = kFullPolicy;
  policy.no_effect_is_intended = true;
  return policy;
}

std::vector<CatalogueEntry> layer_policies() {
  return {
      {"none", "no checkpointing: keep everything that backward needs; the reference", none_policy},
      {"full", "recompute every block, up to the last tensor that backward needs", full_policy},
      {"full_reentrant", "recompute every block to its end, as reentrant checkpointing does",
       full_to_the_end},
      {"full_nostop", "recompute every block to its end, even the ops that backward does not need",
       full_to_the_end},
      {"nth_last(N)", "recompute the last layer of each group of N: (i + 1) % N == 0",
       [](int n) { return every_nth(Kind::kNthLast, n); }},
      {"nth_first(N)", "recompute the first layer of each group of N: i % N == 0",
       [](int n) { return every_nth(Kind::kNthFirst, n); }},
      {"skip_nth(N)", "recompute all layers except every N-th: i % N != 0",
       [](int n) { return every_nth(Kind::kSkipNth, n); }},
      {"first_n(N)", "recompute the first N layers",
       [](int n) { return first_or_last(Kind::kFirst, n); }},
      {"last_n(N)", "recompute the last N layers",
       [](int n) { return first_or_last(Kind::kLast, n); }},
      {"skip_list([I,...])", "recompute all layers except the listed layers",
       [](const std::vector<int>& layers) { return listed(Kind::kExcept, layers); }},
      {"only_list([I,...])", "recompute the listed layers",
       [](const std::vector<int>& layers) { return listed(Kind::kOnly, layers); }},
  };
}

}  // namespace rematch
