// Selective checkpointing that keeps every second matmul: torchtitan's policy and its relatives.
//
// Note [Every second matmul]
// The count starts anew in each region and is raised before it is asked, so calls 1, 3, 5 are kept.
// What counts is exact: aten::mm, in torchtitan aten::linear too, in NeMo Automodel grouped matmuls
// too; never aten::addmm. Fused attention stands in the lists by the names they give it. Source:
// reference implementations of torchtitan (distributed/activation_checkpoint.py), modalities and
// NeMo Automodel.
#include <algorithm>
#include <initializer_list>

#include "policies/catalogue/call.h"
#include "policies/catalogue/families.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/joined.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr const char* kReduceScatter = "_c10d_functional::reduce_scatter_tensor";
constexpr const char* kAllToAll = "_c10d_functional::all_to_all_single";
constexpr const char* kMaxOfAll = "aten::max.default";
constexpr const char* kCompiled = "higher_order::inductor_compiled_code";
constexpr const char* kFlash = "aten::_scaled_dot_product_flash_attention";
constexpr const char* kEfficient = "aten::_scaled_dot_product_efficient_attention";

// Source: the first test that torchtitan makes of an op, before its save list.
constexpr const char* kHostCopies =
    "torchtitan also keeps copies from a GPU to the host (aten::_to_copy); a trace has no devices "
    "and no model here makes such a copy, so no op is kept for that";

std::vector<Selector> ops(std::initializer_list<const char*> names) {
  std::vector<Selector> selectors;
  for (const char* name : names) selectors.push_back({"", name, std::nullopt});
  return selectors;
}

// torchtitan leaves the router's gate out by its shape, so a projection of that shape goes too.
Alternation alternation(std::initializer_list<const char*> counted, Alternation::Keep keep) {
  Alternation alternate;
  alternate.selectors = ops(counted);
  alternate.exclude = {{"*.moe.router.gate", "aten::mm", std::nullopt}};
  alternate.exclude_same_shapes = true;
  alternate.keep = keep;
  return alternate;
}

std::vector<Selector> concatenated(std::vector<Selector> first,
                                   const std::vector<Selector>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// What all of torchtitan's models had in common until early 2026.
std::vector<Selector> titan_attention() {
  return ops({kEfficient, kFlash, "aten::_scaled_dot_product_cudnn_attention",
              "aten::_scaled_dot_product_attention_math",
              "aten::_scaled_dot_product_fused_attention_overrideable",
              "higher_order::flex_attention"});
}

// Calls that move tokens to their experts and back: torchtitan keeps them, so none runs twice.
std::vector<Selector> expert_exchanges() {
  return ops({kAllToAll, "deepep::dispatch", "deepep::combine", "hybridep::dispatch",
              "hybridep::combine"});
}

// torchtitan's save set but for the matmuls that are counted. aten::max over a dimension, gathers
// and all-reduces are not in it.
std::vector<Selector> titan_saves() {
  const std::vector<Selector> other =
      ops({"aten::_flash_attention_forward", "aten::_efficient_attention_forward",
           "torch_attn::_varlen_attn", kCompiled, "aten::addmm", "aten::bmm", "aten::_scaled_mm",
           "aten::convolution", "aten::convolution_backward", "aten::upsample_bilinear2d",
           kMaxOfAll, "aten::topk", kReduceScatter});
  return concatenated(concatenated(titan_attention(), other), expert_exchanges());
}

Policy sac_titan_keeping(Alternation::Keep keep) {
  Policy policy;
  policy.save = titan_saves();
  policy.alternate = alternation({"aten::mm", "aten::linear"}, keep);
  policy.early_stop = false;
  return policy;
}

Policy sac_titan(const std::vector<int>&) { return sac_titan_keeping(Alternation::Keep::kOdd); }
Policy sac_titan_even(const std::vector<int>&) {
  return sac_titan_keeping(Alternation::Keep::kEven);
}

// torchtitan names what is left out by any part of its path; here the paths are scopes. What it
// leaves out is aten::mm: of a linear with a bias, whose aten::addmm is always kept, nothing.
std::variant<Policy, Rejected> sac_titan_excluding(std::string_view arguments) {
  const auto words = parse_words(arguments);
  if (!words) return Rejected{"the brackets of " + in_quotes(arguments) + " do not pair"};
  if (arguments.empty()) {
    return Rejected{
        "sac_titan_excluding needs scopes: write sac_titan_excluding([attention.output]), or ([]) "
        "for none"};
  }
  Policy policy = sac_titan_keeping(Alternation::Keep::kOdd);
  policy.alternate->exclude.clear();
  for (const std::string& word : *words) {
    auto selector = parse_selector("*" + word + "*::aten::mm");
    if (auto* rejected = std::get_if<Rejected>(&selector)) return *rejected;
    policy.alternate->exclude.push_back(std::get<Selector>(std::move(selector)));
  }
  policy.name = "sac_titan_excluding([" + joined(*words, ",") + "])";
  return policy;
}

Policy sac_titan_all(const std::vector<int>&) {
  Policy policy;
  policy.save = concatenated(titan_saves(), ops({"aten::mm", "aten::linear"}));
  policy.early_stop = false;
  return policy;
}

Policy sac_titan_2024(const std::vector<int>&) {
  Policy policy;
  policy.save = ops({kEfficient, kFlash, kReduceScatter});
  policy.alternate = Alternation{ops({"aten::mm"}), {}, Alternation::Keep::kOdd};
  return policy;
}

Policy sac_grouped(const std::vector<int>&) {
  Policy policy = sac_titan_keeping(Alternation::Keep::kOdd);
  policy.alternate->selectors =
      ops({"aten::mm", "aten::linear", "aten::_grouped_mm", "aten::_scaled_grouped_mm"});
  return policy;
}

// The lists that each of torchtitan's models brought along until early 2026.
std::variant<Policy, Rejected> sac_titan_2025(std::string_view model) {
  const std::vector<std::string_view> dense = {"llama3", "qwen3"};
  const std::vector<std::string_view> experts = {"llama4", "deepseek_v3", "gpt_oss"};
  const bool is_dense = std::find(dense.begin(), dense.end(), model) != dense.end();
  if (!is_dense && std::find(experts.begin(), experts.end(), model) == experts.end()) {
    std::vector<std::string_view> all = dense;
    all.insert(all.end(), experts.begin(), experts.end());
    return Rejected{"sac_titan_2025(MODEL): unknown model " + in_quotes(model) +
                    did_you_mean(model, all)};
  }
  Policy policy;
  policy.name = "sac_titan_2025(" + std::string(model) + ")";
  policy.save = concatenated(titan_attention(), ops({kMaxOfAll, kReduceScatter, kCompiled}));
  policy.save =
      concatenated(policy.save, is_dense ? ops({"torch_attn::_varlen_attn"}) : expert_exchanges());
  policy.alternate = alternation({"aten::mm", "aten::linear"}, Alternation::Keep::kOdd);
  policy.early_stop = false;
  return policy;
}

// modalities' SAVE_DICT; a key may be written without "ops." and ".default".
std::variant<Policy, Rejected> sac_modalities(std::string_view arguments) {
  struct Key {
    std::string_view name;
    const char* op;
  };
  const std::vector<Key> keys = {{"aten.mm", "aten::mm"},
                                 {"aten._scaled_dot_product_flash_attention", kFlash},
                                 {"aten._scaled_dot_product_efficient_attention", kEfficient},
                                 {"_c10d_functional.reduce_scatter_tensor", kReduceScatter},
                                 {"aten.max", kMaxOfAll}};
  std::vector<std::string_view> known;
  for (const Key& key : keys) known.push_back(key.name);
  const auto words = parse_words(arguments);
  if (!words) return Rejected{"the brackets of " + in_quotes(arguments) + " do not pair"};
  if (words->empty()) {
    return Rejected{"sac_modalities(KEYS) needs at least one key, for example sac_modalities(" +
                    std::string(keys[0].name) + "," + std::string(keys[1].name) + ")"};
  }
  Policy policy;
  std::string spelling;
  for (const std::string& word : *words) {
    std::string_view name = word;
    if (name.starts_with("torch.")) name.remove_prefix(6);
    if (name.starts_with("ops.")) name.remove_prefix(4);
    if (name.ends_with(".default")) name.remove_suffix(8);
    const auto found =
        std::find_if(keys.begin(), keys.end(), [name](const Key& key) { return key.name == name; });
    if (found == keys.end()) {
      return Rejected{"sac_modalities(KEYS): unknown key " + in_quotes(word) +
                      did_you_mean(name, known)};
    }
    spelling.append(spelling.empty() ? "" : ",").append(name);
    if (found == keys.begin()) {
      policy.alternate = Alternation{ops({found->op}), {}, Alternation::Keep::kOdd};
    } else {
      policy.save.push_back({"", found->op, std::nullopt});
    }
  }
  policy.name = "sac_modalities(" + spelling + ")";
  return policy;
}

}  // namespace

const std::vector<PolicyFamilyEntry>& alternating_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"sac_titan", "", "keep costly ops, of mm and linear every second, router gates none",
        "torchtitan selective", kHostCopies},
       PolicyArguments::kNoArguments,
       sac_titan},
      {{"sac_titan_all", "", "the same set with every mm and linear",
        "torchtitan graph trainer, default", kHostCopies},
       PolicyArguments::kNoArguments,
       sac_titan_all},
      {{"sac_titan_even", "", "sac_titan with the other half of the matmuls",
        "to see what the parity is worth", kHostCopies},
       PolicyArguments::kNoArguments,
       sac_titan_even},
      {{"sac_titan_excluding", "(SCOPES)",
        "sac_titan that leaves out mm of other scopes than router gates, and of their "
        "shapes",
        "torchtitan selective, force_recompute_mm_shapes_by_fqns", kHostCopies},
       PolicyArguments::kText,
       nullptr,
       sac_titan_excluding,
       "[attention.output]"},
      {{"sac_titan_2024", "", "keep attention, reduce-scatter and every second mm",
        "torchtitan's first list, which FastVideo and modalities copied"},
       PolicyArguments::kNoArguments,
       sac_titan_2024},
      {{"sac_titan_2025", "(MODEL)",
        "a model's own list: llama3, qwen3, llama4, deepseek_v3 or gpt_oss",
        "torchtitan until early 2026", kHostCopies},
       PolicyArguments::kText,
       nullptr,
       sac_titan_2025,
       "llama3"},
      {{"sac_modalities", "(KEYS)", "keep what the keys name, of aten.mm every second",
        "modalities selective_op"},
       PolicyArguments::kText,
       nullptr,
       sac_modalities,
       "aten.mm,aten._scaled_dot_product_flash_attention"},
      {{"sac_grouped", "", "sac_titan that counts grouped matmuls too", "NeMo Automodel selective"},
       PolicyArguments::kNoArguments,
       sac_grouped},
  };
  return entries;
}

}  // namespace rematch
