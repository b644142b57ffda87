// Selective checkpointing that keeps every second matmul: torchtitan's policy and policies derived
// from it.
//
// Note [Every second matmul] Each region counts its matmuls, and keeps calls 1, 3, 5, and so on.
// Only ops with certain names count: aten::mm, in torchtitan also aten::linear, and in NeMo
// Automodel also grouped matmuls, but never aten::addmm. The save lists use the systems' names of
// fused attention ops. Source: reference implementations of torchtitan
// (distributed/activation_checkpoint.py), modalities and NeMo Automodel.
#include <algorithm>

#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

using Texts = std::vector<std::string_view>;
using Keep = Alternation::Keep;

constexpr const char* kReduceScatter = "_c10d_functional::reduce_scatter_tensor";
constexpr const char* kMaxOfAll = "aten::max.default";
constexpr const char* kCompiled = "higher_order::inductor_compiled_code";
constexpr const char* kFlash = "aten::_scaled_dot_product_flash_attention";
constexpr const char* kEfficient = "aten::_scaled_dot_product_efficient_attention";

// Regardless of its save list, torchtitan also keeps the results of copies to the host. No policy
// of rematch can do this, so a note tells the user.
constexpr const char* kHostCopies =
    "torchtitan also keeps copies from a GPU to the host (aten::_to_copy); rematch does not, "
    "because a trace does not record devices, and no built-in model makes such a copy";

// torchtitan excludes the router's gate by the shape of its weight. Any projection whose weight has
// the same shape is therefore excluded too.
Alternation every_second(const Texts& counted, Keep keep = Keep::kOdd) {
  Alternation alternate;
  alternate.selectors = selectors(counted);
  alternate.exclude = selectors(
      {in_scope({scope_names::kMoe, scope_names::kRouter, scope_names::kGate}, "aten::mm")});
  alternate.exclude_same_shapes = true;
  alternate.keep = keep;
  return alternate;
}

// The ops that were in the save list of every torchtitan model until early 2026.
Texts titan_attention() {
  return {kEfficient,
          kFlash,
          "aten::_scaled_dot_product_cudnn_attention",
          "aten::_scaled_dot_product_attention_math",
          "aten::_scaled_dot_product_fused_attention_overrideable",
          "higher_order::flex_attention"};
}

// These ops move tokens to their experts and back. torchtitan keeps their results, so no such op
// runs twice.
Texts expert_exchanges() {
  return {"_c10d_functional::all_to_all_single", "deepep::dispatch", "deepep::combine",
          "hybridep::dispatch", "hybridep::combine"};
}

// torchtitan's save list without the matmuls that torchtitan counts. The list does not contain
// aten::max over a dimension, gathers or all-reduces.
Texts titan_saves() {
  Texts saves = titan_attention();
  append(saves, {"aten::_flash_attention_forward", "aten::_efficient_attention_forward",
                 "torch_attn::_varlen_attn", kCompiled, "aten::addmm", "aten::bmm",
                 "aten::_scaled_mm", "aten::convolution", "aten::convolution_backward",
                 "aten::upsample_bilinear2d", kMaxOfAll, "aten::topk", kReduceScatter});
  append(saves, expert_exchanges());
  return saves;
}

Policy titan_keeping(const Texts& saves) {
  Policy policy = keeping(saves);
  policy.early_stop = false;
  policy.note = kHostCopies;
  return policy;
}

Policy sac_titan(Keep keep = Keep::kOdd) {
  Policy policy = titan_keeping(titan_saves());
  policy.alternate = every_second({"aten::mm", "aten::linear"}, keep);
  return policy;
}

Policy sac_titan_all() {
  Texts saves = titan_saves();
  append(saves, {"aten::mm", "aten::linear"});
  return titan_keeping(saves);
}

// torchtitan excludes a linear if its module path contains a given text. This policy uses scopes
// instead of module paths. Only aten::mm can be excluded. A linear with a bias is aten::addmm,
// which is always kept.
std::variant<Policy, Rejected> sac_titan_excluding(const std::vector<std::string>& scopes) {
  Policy policy = sac_titan();
  policy.alternate->exclude.clear();
  for (const std::string& scope : scopes) {
    auto selector = parse_selector("*" + scope + "*::aten::mm");
    if (auto* rejected = std::get_if<Rejected>(&selector)) return *rejected;
    policy.alternate->exclude.push_back(std::get<Selector>(std::move(selector)));
    policy.expectations.push_back({.ops = {policy.alternate->exclude.back()}});
  }
  return policy;
}

Policy sac_titan_2024() {
  Policy policy = keeping({kEfficient, kFlash, kReduceScatter});
  policy.alternate = Alternation{selectors({"aten::mm"}), {}, Keep::kOdd};
  return policy;
}

// Until early 2026, each of torchtitan's models had its own save list.
std::variant<Policy, Rejected> sac_titan_2025(const std::vector<std::string>& words) {
  const Texts dense = {"llama3", "qwen3"};
  Texts models = dense;
  append(models, {"llama4", "deepseek_v3", "gpt_oss"});
  const std::string model = joined(words);
  if (std::find(models.begin(), models.end(), model) == models.end()) {
    return Rejected{"sac_titan_2025(MODEL): unknown model " + in_quotes(model) +
                    did_you_mean(model, models)};
  }
  const bool is_dense = std::find(dense.begin(), dense.end(), model) != dense.end();
  Texts saves = titan_attention();
  append(saves, {kMaxOfAll, kReduceScatter, kCompiled});
  append(saves, is_dense ? Texts{"torch_attn::_varlen_attn"} : expert_exchanges());
  Policy policy = titan_keeping(saves);
  policy.alternate = every_second({"aten::mm", "aten::linear"});
  return policy;
}

// `words` are keys of SAVE_DICT, a table in the framework modalities. "ops." and ".default" may be
// left out.
std::variant<Policy, Rejected> sac_modalities(const std::vector<std::string>& words) {
  const Texts keys = {"aten.mm", "aten._scaled_dot_product_flash_attention",
                      "aten._scaled_dot_product_efficient_attention",
                      "_c10d_functional.reduce_scatter_tensor", "aten.max"};
  const Texts ops = {"aten::mm", kFlash, kEfficient, kReduceScatter, kMaxOfAll};
  if (words.empty()) {
    return Rejected{
        "sac_modalities(KEY,...) needs at least one key, for example sac_modalities(aten.mm," +
        std::string(keys[1]) + ")"};
  }
  Policy policy;
  Texts names;
  for (const std::string& word : words) {
    std::string_view name = word;
    if (name.starts_with("torch.")) name.remove_prefix(6);
    if (name.starts_with("ops.")) name.remove_prefix(4);
    if (name.ends_with(".default")) name.remove_suffix(8);
    const auto found = std::find(keys.begin(), keys.end(), name);
    if (found == keys.end()) {
      return Rejected{"sac_modalities(KEY,...): unknown key " + in_quotes(word) +
                      did_you_mean(name, keys)};
    }
    names.push_back(name);
    const std::string_view op = ops[static_cast<std::size_t>(found - keys.begin())];
    if (op == "aten::mm") {
      policy.alternate = Alternation{selectors({op}), {}, Keep::kOdd};
    } else {
      append(policy.save, selectors({op}));
      policy.expectations.push_back({.ops = selectors({op})});
    }
  }
  policy.name = "sac_modalities(" + joined(names, ",") + ")";
  return policy;
}

Policy sac_grouped() {
  Policy policy = sac_titan();
  policy.alternate->selectors =
      selectors({"aten::mm", "aten::linear", "aten::_grouped_mm", "aten::_scaled_grouped_mm"});
  policy.note.clear();
  return policy;
}

}  // namespace

std::vector<std::string_view> modalities_keys() {
  return {"ops.aten.mm.default", "ops.aten._scaled_dot_product_flash_attention.default",
          "ops.aten._scaled_dot_product_efficient_attention.default",
          "ops._c10d_functional.reduce_scatter_tensor.default", "ops.aten.max.default"};
}

std::vector<CatalogueEntry> alternating_policies() {
  return {
      {"sac_titan",
       "torchtitan's default: keep costly ops, and every second mm and linear except router gates",
       [] { return sac_titan(); }},
      {"sac_titan_all", "keep costly ops and every mm and linear", sac_titan_all},
      {"sac_titan_even",
       "like sac_titan, but keep the even-numbered matmuls instead of the odd-numbered matmuls",
       [] { return sac_titan(Keep::kEven); }},
      {"sac_titan_excluding([SCOPE,...])",
       "like sac_titan, but instead of router gates, exclude the mm ops of these scopes and all mm "
       "ops of the same shapes",
       sac_titan_excluding},
      {"sac_titan_2024",
       "keep attention, reduce-scatter and every second mm: torchtitan's first list, copied by "
       "FastVideo and modalities",
       sac_titan_2024},
      {"sac_titan_2025(MODEL)",
       "keep the ops that torchtitan listed for one model until early 2026: llama3, qwen3, llama4, "
       "deepseek_v3 or gpt_oss",
       sac_titan_2025},
      {"sac_modalities(KEY,...)", "keep the ops that the keys name, but only every second aten.mm",
       sac_modalities},
      {"sac_grouped", "like sac_titan, but count grouped matmuls too", sac_grouped},
  };
}

}  // namespace rematch
