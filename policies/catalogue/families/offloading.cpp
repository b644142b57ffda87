// Policies that keep tensors on the host. The tensors are the inputs of another policy's regions,
// everything that another policy keeps, or the inputs of named modules.
//
// Note [What systems offload] torchtune, DeepSpeed and Hugging Face's trainers checkpoint every
// layer and keep its input on the host. MaxText offloads named tensors. torchtitan's graph trainer
// offloads the outputs of layers, and the contiguous results that its save list keeps, if backward
// reads them and they have at least 4096 bytes. Megatron-LM
// recomputes nothing, and offloads the tensors that the first op of a module reads. The policies
// below select such a tensor by the op that made it.
#include <algorithm>
#include <initializer_list>
#include <string>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

constexpr Bytes kGraphTrainerLeast{4096};

bool names_any(const std::vector<std::string>& words, std::initializer_list<std::string_view> any) {
  return std::any_of(any.begin(), any.end(), [&](std::string_view name) {
    return std::find(words.begin(), words.end(), name) != words.end();
  });
}

// Parses a policy such as `offload_inputs(full)`. Sets one rule for the store in the inner policy.
// `key` is the outer name, which is also the rule's key in policy files.
std::variant<Policy, Rejected> within(const char* key, Store store, bool StoreRule::*member,
                                      const std::vector<std::string>& words) {
  auto parsed = policy_within(key, words, in_quotes(key) + ": true");
  if (auto* policy = std::get_if<Policy>(&parsed)) policy->moved_to[store].*member = true;
  return parsed;
}

std::variant<Policy, Rejected> offload_inputs(const std::vector<std::string>& words) {
  return within(traits_of(Store::kHost).inputs_key, Store::kHost, &StoreRule::inputs, words);
}

std::variant<Policy, Rejected> offload_saved(const std::vector<std::string>& words) {
  return within(traits_of(Store::kHost).saved_key, Store::kHost, &StoreRule::saved, words);
}

bool is_attention(const Selector& selector) {
  return selector.op.find("attention") != std::string::npos ||
         selector.op.find("attn") != std::string::npos;
}

// torchtitan's pass moves only contiguous tensors, so the result of attention stays on the device.
Policy sac_and_offload() {
  Policy policy = std::get<Policy>(parse_policy("sac_titan_all"));
  policy.name.clear();
  StoreRule& moved = policy.moved_to[Store::kHost];
  const auto first_moved =
      std::stable_partition(policy.save.begin(), policy.save.end(), is_attention);
  moved.results.assign(first_moved, policy.save.end());
  policy.save.erase(first_moved, policy.save.end());
  moved.inputs = true;
  moved.at_least = kGraphTrainerLeast;
  moved.demanded_only = true;
  return policy;
}

struct ModuleInput {
  std::string_view module;
  // ops that make the module's input; if empty, the input is the region's input
  std::vector<Selector> made_by;
};

const std::vector<ModuleInput>& module_inputs() {
  using namespace scope_names;
  static const std::vector<ModuleInput> all = {
      {"layer_input", {}},
      {"attn_norm", {}},
      {"qkv_linear", selectors({in_any_scope({kAttentionNorm}, "result")})},
      {"core_attn", query_key_value()},
      {"attn_proj", selectors({"attention_forward"})},
      {"mlp_norm", selectors({in_any_scope({kAttention, kOutput}, "result")})},
      {"expert_fc1", selectors({in_scope({kFfnNorm}, "result")})},
      {"fused_group_mlp", selectors({in_scope({kMoe, kDispatch}, "result")})},
      {"moe_act",
       selectors({in_scope({kMoe, kExperts}, "matmul#1"), in_scope({kMoe, kExperts}, "matmul#2")})},
  };
  return all;
}

std::vector<std::string_view> names_of_modules() {
  std::vector<std::string_view> names;
  for (const ModuleInput& input : module_inputs()) names.push_back(input.module);
  return names;
}

std::variant<Policy, Rejected> offload_modules(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Rejected{"offload_modules needs modules: " + joined(names_of_modules())};
  }
  if (names_any(words, {"fused_group_mlp"}) && names_any(words, {"expert_fc1", "moe_act"})) {
    return Rejected{
        "offload_modules: fused_group_mlp already includes expert_fc1 and moe_act; leave out "
        "expert_fc1 and moe_act"};
  }
  Policy policy;
  policy.inverse = true;
  for (const std::string& word : words) {
    if (const auto absent = absent_module("offload_modules", word)) return *absent;
    const auto found = std::find_if(module_inputs().begin(), module_inputs().end(),
                                    [&](const ModuleInput& input) { return input.module == word; });
    if (found == module_inputs().end()) {
      return Rejected{"offload_modules: unknown module " + in_quotes(word) +
                      did_you_mean(word, names_of_modules())};
    }
    append(policy.moved_to[Store::kHost].results, found->made_by);
    policy.moved_to[Store::kHost].inputs |= found->made_by.empty();
    if (found->made_by.empty()) continue;
    policy.expectations.push_back(
        {.ops = found->made_by,
         .warning = "the model has no " + word + ", so nothing is offloaded for that name"});
  }
  return policy;
}

}  // namespace

std::vector<std::string_view> offloadable_modules() { return names_of_modules(); }

std::vector<CatalogueEntry> offloading_policies() {
  return {
      {"offload_inputs(POLICY)", "POLICY, but the inputs of its regions are kept on the host",
       offload_inputs},
      {"offload_saved(POLICY)", "POLICY, but everything that it keeps is kept on the host",
       offload_saved},
      {"sac_and_offload",
       "sac_titan_all, but keep on the host what backward reads of it, except attention, and the "
       "inputs of blocks, from 4096 bytes on: torchtitan's graph trainer",
       sac_and_offload},
      {"offload_modules([MODULE,...])",
       "recompute nothing, but keep the inputs of modules on the host", offload_modules},
  };
}

}  // namespace rematch
