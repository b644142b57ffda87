// The inverse lists: everything is kept but the modules or ops that are named.
#include <algorithm>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

// Note [Output discarding]
// Megatron-LM recomputes heavy modules as regions of their own: their input is kept, and their
// output too, since the next module saved it. Of light ones it drops the output as well and
// computes it again when the consumer's backward wants it. Here the heavy ones are regions over
// scopes, and the light ones are the ops left out of a block region that keeps all else: what reads
// their output then waits for it, which is the same.
struct Module {
  std::string_view name;
  std::vector<std::string> scopes;            // heavy
  std::vector<std::string> discarded_scopes;  // light: every op that computes in them
  std::vector<Selector> discarded;            // light: these ops
};

const std::vector<Module>& modules() {
  static const std::vector<Module> all = {
      {"core_attn", {"attention.core", "self_attention.core", "cross_attention.core"}, {}, {}},
      {"mlp", {"ffn"}, {}, {}},
      {"moe", {"moe"}, {}, {}},
      {"shared_experts", {"moe.shared_experts"}, {}, {}},
      {"layernorm",
       {},
       {"attention_norm", "self_attention_norm", "cross_attention_norm", "ffn_norm"},
       {}},
      {"moe_act",
       {},
       {},
       {{"*.moe.experts", "aten::silu", std::nullopt},
        {"*.moe.experts", "aten::mul", std::nullopt},
        {"*.moe.experts", "rematch::silu_mul", std::nullopt}}},
      {"mla_up_proj", {}, {"attention.kv_up"}, {}},
  };
  return all;
}

void add_discarded(const Module& module, Policy& policy) {
  for (const std::string& scope : module.discarded_scopes) {
    for (const char* kind : {"elementwise", "reduction", "norm", "matmul", "copy"}) {
      policy.recompute.push_back({"*." + scope, kind, std::nullopt});
    }
  }
  policy.recompute.insert(policy.recompute.end(), module.discarded.begin(), module.discarded.end());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ",").append(word);
  return text;
}

std::variant<Policy, Rejected> recompute_modules(std::string_view arguments) {
  const auto words = parse_words(arguments);
  if (!words || words->empty()) {
    return Rejected{
        "recompute_modules needs modules: write recompute_modules([core_attn]), or [layernorm,"
        "moe_act]"};
  }
  std::vector<std::string_view> known;
  for (const Module& module : modules()) known.push_back(module.name);
  Policy policy;
  policy.name = "recompute_modules([" + joined(*words) + "])";
  for (const std::string& word : *words) {
    const auto found = std::find_if(modules().begin(), modules().end(),
                                    [&](const Module& module) { return module.name == word; });
    if (found == modules().end()) {
      return Rejected{"recompute_modules: unknown module " + in_quotes(word) +
                      did_you_mean(word, known)};
    }
    policy.regions.patterns.insert(policy.regions.patterns.end(), found->scopes.begin(),
                                   found->scopes.end());
    add_discarded(*found, policy);
  }
  const bool has_heavy = !policy.regions.patterns.empty();
  if (has_heavy && !policy.recompute.empty()) {
    return Rejected{
        policy.name +
        ": core_attn, mlp, moe and shared_experts become regions, layernorm, moe_act and "
        "mla_up_proj have their outputs dropped; name modules of one kind"};
  }
  if (has_heavy) policy.regions.kind = RegionChoice::Kind::kScopes;
  policy.inverse = !has_heavy;
  return policy;
}

std::variant<Policy, Rejected> full_except(std::string_view arguments) {
  const auto words = parse_words(arguments);
  if (!words) return Rejected{"the brackets of " + in_quotes(arguments) + " do not pair"};
  Policy policy;
  policy.name = "full_except(" + joined(*words) + ")";
  for (const std::string& word : *words) {
    auto selector = parse_selector(word);
    if (auto* rejected = std::get_if<Rejected>(&selector)) return *rejected;
    policy.save.push_back(std::get<Selector>(std::move(selector)));
  }
  policy.save.push_back({"", "random", std::nullopt});
  policy.no_effect_is_intended = words->empty();  // full, where nothing is drawn
  return policy;
}

}  // namespace

const std::vector<PolicyFamilyEntry>& module_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"recompute_modules", "(MODULES)",
        "keep everything but modules: core_attn, mlp, moe, shared_experts, or outputs of "
        "layernorm, "
        "moe_act, mla_up_proj",
        "Megatron-LM selective"},
       PolicyArguments::kText,
       nullptr,
       recompute_modules,
       "[core_attn]"},
      {{"full_except", "(SELECTORS)", "recompute every block but what selectors and draws give",
        "torchtitan graph trainer, full"},
       PolicyArguments::kText,
       nullptr,
       full_except,
       "attention_forward"},
  };
  return entries;
}

}  // namespace rematch
