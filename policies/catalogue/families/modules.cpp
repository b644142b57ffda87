// Policies that name the exceptions to a rule: modules to recompute, or ops to keep.
#include <algorithm>
#include <array>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

// Note [Output discarding] Megatron-LM recomputes modules in two ways. A heavy module, such as mlp,
// is a separate region. Its input is kept, and its output stays in memory because the next module
// saves it. The output of a light module, such as layernorm, is dropped, and recomputed when the
// next module's backward needs it.
//
// Here, a heavy module is a region over its scopes. A light module is a set of ops that a region
// over the whole block recomputes on demand (RegionType::by_demand). The region keeps everything
// else. A policy that names modules of both kinds has only block regions. These regions drop the
// outputs of heavy modules too, at no cost in ops or bytes.
struct Module {
  std::string_view name;
  bool is_heavy = false;
  std::vector<std::string> scopes;  // the module contains all ops in these scopes
  std::vector<Selector> ops;        // the module also contains these ops
};

const std::vector<Module>& modules() {
  using namespace scope_names;
  static const std::vector<Module> all = {
      {"core_attn",
       true,
       {path({kAttention, kCore}), path({kSelfAttention, kCore}), path({kCrossAttention, kCore})},
       {}},
      {"mlp", true, {path({kFfn})}, {}},
      {"moe", true, {path({kMoe})}, {}},
      {"shared_experts", true, {path({kMoe, kSharedExperts})}, {}},
      {"layernorm",
       false,
       {path({kAttentionNorm}), path({kSelfAttentionNorm}), path({kCrossAttentionNorm}),
        path({kFfnNorm})},
       {}},
      {"moe_act",
       false,
       {},
       selectors({in_scope({kMoe, kExperts}, "aten::silu"), in_scope({kMoe, kExperts}, "aten::mul"),
                  in_scope({kMoe, kExperts}, "rematch::silu_mul"),
                  in_scope({kMoe, kExperts}, "rematch::packed_silu_mul")})},
      // mla_up_proj includes both rotary embeddings. The key's rotary embedding is in scope
      // kv_down, whose matmul is kept.
      {"mla_up_proj",
       false,
       {path({kAttention, kQuery}), path({kAttention, kKvUp})},
       selectors({in_scope({kAttention, kKvDown}, "elementwise"),
                  in_scope({kAttention, kKvDown}, "copy")})},
  };
  return all;
}

std::vector<std::string_view> module_names() {
  std::vector<std::string_view> names;
  for (const Module& module : modules()) names.push_back(module.name);
  return names;
}

Policy::Expectation expectation_of(const Module& module) {
  return {module.scopes, module.ops, "", std::string(module.name)};
}

// Adds the module's ops to the ops to recompute. Omits views, which cost nothing, and collectives,
// which are never issued twice.
void recompute_ops_of(const Module& module, Policy& policy) {
  std::vector<const char*> kinds = {"elementwise", "reduction", "norm", "matmul", "copy"};
  if (module.is_heavy) append(kinds, {"attention_forward", "embedding", "random", "other"});
  for (const std::string& scope : module.scopes) {
    for (const char* kind : kinds) policy.recompute.push_back({"*." + scope, kind, std::nullopt});
  }
  append(policy.recompute, module.ops);
}

std::variant<Policy, Rejected> recompute_modules(const std::vector<std::string>& words) {
  if (words.empty()) {
    return Rejected{"recompute_modules needs modules: " + joined(module_names())};
  }
  std::vector<const Module*> chosen;
  for (const std::string& word : words) {
    if (const auto absent = absent_module("recompute_modules", word)) return *absent;
    const auto found = std::find_if(modules().begin(), modules().end(),
                                    [&](const Module& module) { return module.name == word; });
    if (found == modules().end()) {
      return Rejected{"recompute_modules: unknown module " + in_quotes(word) +
                      did_you_mean(word, module_names())};
    }
    if (std::find(chosen.begin(), chosen.end(), &*found) != chosen.end()) {
      return Rejected{"recompute_modules names " + word + " twice; name each module once"};
    }
    chosen.push_back(&*found);
  }
  Policy policy;
  policy.inverse = std::any_of(chosen.begin(), chosen.end(),
                               [](const Module* module) { return !module->is_heavy; });
  if (!policy.inverse) policy.regions.kind = RegionChoice::Kind::kScopes;
  for (const Module* module : chosen) {
    policy.expectations.push_back(expectation_of(*module));
    if (policy.inverse) {
      recompute_ops_of(*module, policy);
    } else {
      append(policy.regions.patterns, module->scopes);
    }
  }
  if (words == std::vector<std::string>{"core_attn"}) {
    // Recomputing attention frees almost nothing. Fused attention saves its inputs and one number
    // per row, and the projection that follows saves the output of attention.
    policy.expectations.push_back(
        {{},
         selectors({"matmul"}),
         "attention is one fused op here, so recomputing it saves almost nothing"});
  }
  return policy;
}

std::variant<Policy, Rejected> full_except(const std::vector<std::string>& words) {
  Policy policy;
  for (const std::string& word : words) {
    auto selector = parse_selector(word);
    if (auto* rejected = std::get_if<Rejected>(&selector)) return *rejected;
    policy.save.push_back(std::get<Selector>(std::move(selector)));
    policy.expectations.push_back({.ops = {policy.save.back()}});
  }
  append(policy.save, selectors({"random"}));
  // a user who lists no selectors may intend the plan of policy `full`
  policy.no_effect_is_intended = words.empty();
  return policy;
}

}  // namespace

std::optional<Rejected> absent_module(const std::string& policy, const std::string& module) {
  struct Absent {
    std::string_view name;
    std::string_view layers;
  };
  // Source: Megatron-LM d98e8a64d, core/transformer/transformer_config.py.
  constexpr std::array kAbsent = {
      Absent{"gdn_norm_out", "gated delta nets"}, Absent{"gdp_in_proj", "gated delta products"},
      Absent{"gdp_qkv", "gated delta products"}, Absent{"mhc", "hyper connections"}};
  const auto found = std::find_if(kAbsent.begin(), kAbsent.end(),
                                  [&](const Absent& absent) { return absent.name == module; });
  if (found == kAbsent.end()) return std::nullopt;
  return Rejected{policy + ": " + module + " is a module of " + std::string(found->layers) +
                  ", which no model here has"};
}

std::vector<Policy::Expectation> module_expectations() {
  std::vector<Policy::Expectation> all;
  for (const Module& module : modules()) all.push_back(expectation_of(module));
  return all;
}

std::vector<std::string_view> recomputable_modules() { return module_names(); }

std::vector<CatalogueEntry> module_policies() {
  return {
      {"recompute_modules([MODULE,...])",
       "recompute modules (core_attn, mlp, moe, shared_experts) and keep the rest; layernorm, "
       "moe_act and mla_up_proj drop their outputs too",
       recompute_modules},
      {"full_except(SELECTOR,...)",
       "recompute every block, but keep the selected ops and random draws", full_except},
  };
}

}  // namespace rematch
