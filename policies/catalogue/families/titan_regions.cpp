// torchtitan's policies on torch_remat: ActivationRematConfig and its two presets.
//
// Note [Regions of torchtitan] torchtitan's models declare regions by name, and a config lists
// patterns of the regions to save. Every linear is a region, `NAME.linear`, and so is every
// attention kernel. Norms, rotary embedding and activations are not regions, so recompute always
// runs them. The selection of experts is always saved. torch_remat runs a block again to its end,
// so a linear that is not saved runs again even if backward does not need its result. The residual
// add at the end of a block is always a saved region, which keeps nothing. torchtitan also saves
// the add of the shared experts, which the models here do not have. Source: torchtitan,
// docs/remat.md ("Trailing adds") and distributed/activation_checkpoint.py of 03d9819f.
#include <algorithm>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

struct TitanRegion {
  std::string_view name;
  std::vector<Selector> ops;
};

// The regions that torchtitan's documentation names, and their scopes in the models here. The
// regions of latent attention are missing, because in torchtitan they differ between models.
const std::vector<TitanRegion>& titan_regions() {
  using namespace scope_names;
  constexpr const char* kGather = "_c10d_functional::all_gather_into_tensor";
  constexpr const char* kScatter = "_c10d_functional::reduce_scatter_tensor";
  constexpr const char* kReduce = "_c10d_functional::all_reduce";
  static const std::vector<TitanRegion> all = {
      {"attention.qkv_linear.wqkv.tp_gather",
       selectors({in_any_scope({kAttention, kQkv}, kGather)})},
      {"attention.qkv_linear.wqkv.linear", selectors({in_any_scope({kAttention, kQkv}, "matmul")})},
      {"attention.inner_attention", selectors({in_any_scope({kAttention, kCore}, "any")})},
      {"attention.wo.linear", selectors({in_any_scope({kAttention, kOutput}, "matmul")})},
      {"attention.wo.tp_reduce", selectors({in_any_scope({kAttention, kOutput}, kScatter),
                                            in_any_scope({kAttention, kOutput}, kReduce)})},
      {"feed_forward.w13.tp_gather", selectors({in_scope({kFfn}, kGather)})},
      {"feed_forward.w13.linear",
       selectors({in_scope({kFfn}, "matmul#1"), in_scope({kFfn}, "matmul#2")})},
      {"feed_forward.w2.linear", selectors({in_scope({kFfn}, "matmul#3")})},
      {"feed_forward.w2.tp_reduce",
       selectors({in_scope({kFfn}, kScatter), in_scope({kFfn}, kReduce)})},
      {"moe.router.gate.linear", selectors({in_scope({kMoe, kRouter, kGate}, "matmul")})},
      {"moe.routed_experts.token_dispatcher.dispatch",
       selectors({in_scope({kMoe, kDispatch}, "collective")})},
      {"moe.routed_experts.w13.grouped_mm",
       selectors({in_scope({kMoe, kExperts}, "matmul#1"), in_scope({kMoe, kExperts}, "matmul#2")})},
      {"moe.routed_experts.w2.grouped_mm", selectors({in_scope({kMoe, kExperts}, "matmul#3")})},
      {"moe.routed_experts.token_dispatcher.combine",
       selectors({in_scope({kMoe, kCombine}, "any")})},
      {"moe.shared_experts.w13.linear", selectors({in_scope({kMoe, kSharedExperts}, "matmul#1"),
                                                   in_scope({kMoe, kSharedExperts}, "matmul#2")})},
      {"moe.shared_experts.w2.linear", selectors({in_scope({kMoe, kSharedExperts}, "matmul#3")})},
  };
  return all;
}

// The selection of experts, which every config of torchtitan saves.
std::vector<Selector> always_saved() {
  using namespace scope_names;
  return selectors({in_scope({kMoe, kRouter}, "aten::topk")});
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) { return matches_pattern(pattern, name); });
}

// Rejects a pattern that matches no region. torchtitan ignores such a pattern.
std::optional<Rejected> check_patterns(const std::vector<std::string>& patterns) {
  std::vector<std::string_view> names;
  for (const TitanRegion& region : titan_regions()) names.push_back(region.name);
  for (const std::string& pattern : patterns) {
    if (std::any_of(names.begin(), names.end(),
                    [&](std::string_view name) { return matches_pattern(pattern, name); })) {
      continue;
    }
    return Rejected{"remat_titan: no region matches " + in_quotes(pattern) +
                    did_you_mean(pattern, names) + "; known: " + joined(names)};
  }
  return std::nullopt;
}

std::variant<Policy, Rejected> remat_titan(const std::vector<std::string>& words) {
  const auto lists = parse_region_lists(words);
  if (!lists) {
    return Rejected{
        "remat_titan needs the list of save_regions: write "
        "remat_titan(save=[attention.*],recompute=[]), not (" +
        joined(words) + ")"};
  }
  for (const auto* patterns : {&lists->save, &lists->recompute}) {
    if (auto rejected = check_patterns(*patterns)) return *std::move(rejected);
  }
  Policy policy;
  policy.early_stop = false;
  policy.save_regions = always_saved();
  policy.save_last_add = true;
  policy.no_effect_is_intended = true;
  std::vector<Selector> asked_for;
  for (const TitanRegion& region : titan_regions()) {
    if (!any_matches(lists->save, region.name)) continue;
    if (any_matches(lists->recompute, region.name)) continue;
    append(asked_for, region.ops);
  }
  append(policy.save_regions, asked_for);
  if (!asked_for.empty()) {
    policy.expectations.push_back(
        {.ops = asked_for, .warning = "the model has none of the regions that the policy saves"});
  }
  policy.name = to_string("remat_titan", *lists);
  return policy;
}

}  // namespace

std::vector<std::string_view> titan_region_names() {
  std::vector<std::string_view> names;
  for (const TitanRegion& region : titan_regions()) names.push_back(region.name);
  return names;
}

std::vector<CatalogueEntry> titan_region_policies() {
  return {
      {"remat_titan(save=[PATTERN,...],recompute=[PATTERN,...])",
       "recompute every block, except torchtitan's regions that match a pattern", remat_titan},
  };
}

}  // namespace rematch
