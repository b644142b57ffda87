// Policies that change how another policy treats the collectives in its regions.
//
// Note [Collectives of a policy] torch.utils.checkpoint and torchtitan issue a collective again
// unless their save list contains it. torchtitan's list contains reduce-scatters and all-to-alls,
// but no all-gather. Megatron-LM also issues collectives again. All ranks share one plan and run
// backward in the same order, so they issue collectives in the same order. A policy's lists do not
// apply to gathers of sharded parameters: FSDP's reshard_after_forward controls these.
#include <string>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

constexpr const char* kFileKeys = "\"collectives\" or \"reshard_after_forward\"";

}  // namespace

std::variant<Policy, Rejected> policy_within(const std::string& name,
                                             const std::vector<std::string>& words,
                                             const std::string& file_keys) {
  if (words.size() != 1) {
    return Rejected{name + " takes one policy: write " + name + "(full), not (" + joined(words) +
                    ")"};
  }
  auto parsed = parse_policy(words.front());
  if (auto* policy = std::get_if<Policy>(&parsed)) {
    if (policy->name.ends_with(".json")) {
      return Rejected{name + " takes the name of a policy, but " + in_quotes(policy->name) +
                      " is a file; write " + file_keys + " in that file"};
    }
    policy->name = name + "(" + policy->name + ")";
    policy->no_effect_is_intended = true;
    policy->note.clear();
  }
  return parsed;
}

namespace {

std::variant<Policy, Rejected> with_rule(const std::string& name, CollectiveRule rule,
                                         const std::vector<std::string>& words) {
  auto parsed = policy_within(name, words, kFileKeys);
  if (auto* policy = std::get_if<Policy>(&parsed)) {
    policy->collectives = rule;
    policy->expectations.push_back({.ops = selectors({"collective"}),
                                    .warning = "its regions contain no collective, so the rule has "
                                               "no effect on the policy in brackets"});
  }
  return parsed;
}

std::variant<Policy, Rejected> no_reshard(const std::vector<std::string>& words) {
  auto parsed = policy_within("no_reshard", words, kFileKeys);
  if (auto* policy = std::get_if<Policy>(&parsed)) {
    policy->reshard_after_forward = false;
    policy->expectations.push_back(
        {.ops = selectors({"_c10d_functional::all_gather_into_tensor_coalesced",
                           "_c10d_functional::all_gather_into_tensor"}),
         .warning = "its regions gather no parameters, so the rule has no effect on the policy in "
                    "brackets"});
  }
  return parsed;
}

}  // namespace

std::vector<CatalogueEntry> collective_policies() {
  return {
      {"keep_collectives(POLICY)", "POLICY, but no collective in its regions is issued again",
       [](const std::vector<std::string>& words) {
         return with_rule("keep_collectives", CollectiveRule::kKeep, words);
       }},
      {"reissue_collectives(POLICY)", "POLICY, but every collective in its regions is issued again",
       [](const std::vector<std::string>& words) {
         return with_rule("reissue_collectives", CollectiveRule::kReissue, words);
       }},
      {"no_reshard(POLICY)",
       "POLICY, but gathered parameters are kept until backward: FSDP's "
       "reshard_after_forward=False",
       no_reshard},
  };
}

}  // namespace rematch
