// MaxText's remat policies, which keep named tensors and recompute the rest.
//
// Note [MaxText's names] MaxText names some tensors of a model. If a scope here returns the tensor,
// the name stands for the scope's result, for eager and fused ops, and with or without biases and
// adapters. The dtype of the result is the dtype in which the next op reads it.
// - query_proj and key_proj are named after qk-norm and rotary embedding, so keeping them avoids
//   recomputing both. value_proj is the third result of qkv. Latent attention returns its query in
//   one scope, and key and value in another.
// - context is the attention's output with its statistics.
// - mlpwi_0, mlpwi_1 and mlpwo are the matmuls of a gated feed-forward, in this order. A
//   feed-forward without a gate has only two matmuls. If the matmuls have adapters, the names stand
//   for the sums with the adapters' results.
// - moe_mlpwi_0, moe_mlpwi_1 and moe_mlpwo are the matmuls of routed experts.
// - kv_wa_proj is latent attention's down projection of key and value. query_wa_proj is the query's
//   down projection, which no model here has.
//
// If the model has dropout, the scope returns the tensor after dropout, and the mask. Source:
// MaxText's layers/decoders.py, layers/attentions.py, layers/attention_mla.py, layers/moe.py and
// configs/base.yml (e591f30cb).
#include <algorithm>
#include <optional>

#include "policies/base/text.h"
#include "policies/catalogue/families/families.h"

namespace rematch {
namespace {

using scope_names::kAdapted;
using scope_names::kAttention;
using scope_names::kFfn;
using scope_names::kMoe;
using scope_names::kOutput;
using scope_names::kSharedExperts;

using Selectors = std::vector<Selector>;

// The result of the attention's output projection.
std::string out_projection() { return in_any_scope({kAttention, kOutput}, "result"); }

Policy on_host(Policy policy) {
  policy.moved_to[Store::kHost].saved = true;
  return policy;
}

Policy keeping_qkv_and(const Selectors& more) {
  Policy policy;
  policy.save = query_key_value();
  append(policy.save, more);
  return policy;
}

// Makes one of MaxText's "minimal" policies, which keeps the feed-forward's matmuls and `more`.
Policy minimal(Selectors more) {
  append(more, selectors({out_projection(), in_scope({kFfn}, "matmul"),
                          in_scope({kFfn, kAdapted}, "result"),
                          in_scope({kMoe, kSharedExperts}, "matmul")}));
  Policy policy = keeping_qkv_and(more);
  policy.exclude = selectors({in_scope({kFfn, kAdapted}, "matmul")});
  return policy;
}

// A tensor that MaxText names, and the selectors that pick this tensor in the models here.
struct RematTensor {
  std::string_view name;
  std::vector<Selector> ops;
};

const std::vector<RematTensor>& remat_tensors() {
  using namespace scope_names;
  static const std::vector<RematTensor> all = {
      {"context", selectors({"attention_forward"})},
      {"query_proj", selectors({in_any_scope({kAttention, kRotary}, "result#1"),
                                in_scope({kAttention, kQuery}, "result"),
                                in_scope({kCrossAttention, kQkNorm}, "result#1")})},
      {"key_proj", selectors({in_any_scope({kAttention, kRotary}, "result#2"),
                              in_scope({kAttention, kKvUp}, "result#1"),
                              in_scope({kCrossAttention, kQkNorm}, "result#2")})},
      {"value_proj", selectors({in_any_scope({kAttention, kQkv}, "result#3"),
                                in_scope({kAttention, kKvUp}, "result#2")})},
      {"out_proj", selectors({out_projection()})},
      {"mlpwi_0",
       selectors({in_scope({kFfn}, "matmul#1"), in_scope({kMoe, kSharedExperts}, "matmul#1")})},
      {"mlpwi_1",
       selectors({in_scope({kFfn}, "matmul#2"), in_scope({kMoe, kSharedExperts}, "matmul#2")})},
      {"mlpwo",
       selectors({in_scope({kFfn}, "matmul#3"), in_scope({kMoe, kSharedExperts}, "matmul#3")})},
      {"moe_mlpwi_0", selectors({in_scope({kMoe, kExperts}, "matmul#1")})},
      {"moe_mlpwi_1", selectors({in_scope({kMoe, kExperts}, "matmul#2")})},
      {"moe_mlpwo", selectors({in_scope({kMoe, kExperts}, "matmul#3")})},
      {"kv_wa_proj", selectors({in_scope({kAttention, kKvDown}, "matmul")})},
      {"query_wa_proj", {}},
  };
  return all;
}

std::optional<Rejected> place_tensor(std::string_view word, Policy& policy) {
  const std::size_t sign = word.find('=');
  const std::string name(trimmed(word.substr(0, sign)));
  const std::string_view place =
      sign == std::string_view::npos ? std::string_view() : trimmed(word.substr(sign + 1));
  if (place != "device" && place != "offload" && place != "remat") {
    return Rejected{"remat_custom: " + in_quotes(word) +
                    " is not NAME=device, NAME=offload or NAME=remat"};
  }
  const auto found = std::find_if(remat_tensors().begin(), remat_tensors().end(),
                                  [&](const RematTensor& tensor) { return tensor.name == name; });
  if (found == remat_tensors().end()) {
    std::vector<std::string_view> names;
    for (const RematTensor& tensor : remat_tensors()) names.push_back(tensor.name);
    return Rejected{"remat_custom: unknown tensor " + in_quotes(name) + did_you_mean(name, names)};
  }
  if (place == "remat") return std::nullopt;
  if (found->ops.empty()) return Rejected{"remat_custom: no model here has a tensor " + name};
  append(place == "device" ? policy.save : policy.moved_to[Store::kHost].results, found->ops);
  policy.expectations.push_back({.ops = found->ops});
  return std::nullopt;
}

std::variant<Policy, Rejected> remat_custom(const std::vector<std::string>& words) {
  Policy policy;
  for (const std::string& word : words) {
    if (auto rejected = place_tensor(word, policy)) return *std::move(rejected);
  }
  if (policy.save.empty() && policy.moved_to[Store::kHost].results.empty()) {
    return Rejected{"remat_custom keeps no tensor; write full, or remat_custom(out_proj=device)"};
  }
  return policy;
}

}  // namespace

const std::vector<Selector>& query_key_value() {
  using namespace scope_names;
  static const std::vector<Selector> all = selectors(
      {in_any_scope({kAttention, kRotary}, "result"), in_scope({kAttention, kQuery}, "result"),
       in_scope({kAttention, kKvUp}, "result"), in_any_scope({kAttention, kQkv}, "result#3"),
       in_scope({kCrossAttention, kQkNorm}, "result")});
  return all;
}

std::vector<CatalogueEntry> maxtext_policies() {
  return {
      {"remat_save_out_proj", "keep the attention's output projection",
       [] { return keeping({out_projection()}); }},
      {"remat_save_qkv_proj", "keep query and key after rotary embedding, and value",
       [] { return keeping_qkv_and({}); }},
      {"remat_save_dot_except_mlp", "keep query, key, value and the output projection",
       [] { return keeping_qkv_and(selectors({out_projection()})); }},
      {"remat_save_dot_except_mlpwi",
       "keep query, key, value, the output projection and the output of dense feed-forwards",
       [] {
         return keeping_qkv_and(selectors({out_projection(), in_scope({kFfn}, "result"),
                                           in_scope({kMoe, kSharedExperts}, "result")}));
       }},
      {"remat_save_dot_with_context_except_mlp",
       "keep all of attention and nothing of the feed-forward",
       [] {
         return keeping_qkv_and(selectors({"attention_forward", out_projection()}));
       }},
      {"remat_minimal",
       "keep query, key, value, the output projection and the matmuls of dense feed-forwards",
       [] { return minimal({}); }},
      {"remat_minimal_offloaded", "keep the tensors of remat_minimal on the host",
       [] { return on_host(minimal({})); }},
      {"remat_qkv_proj_offloaded", "keep query, key and value on the host",
       [] { return on_host(keeping_qkv_and({})); }},
      {"remat_minimal_with_context", "keep what remat_minimal keeps, and attention's output",
       [] { return minimal(selectors({"attention_forward"})); }},
      {"remat_custom(NAME=PLACE,...)",
       "for each of MaxText's named tensors: keep it on the device (device) or on the host "
       "(offload), or recompute it (remat)",
       remat_custom},
  };
}

}  // namespace rematch
