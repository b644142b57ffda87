// Policies that make every block a region, keep the results of some ops and recompute the rest.
#include "policies/catalogue/families/families.h"

namespace rematch {

std::vector<Selector> selectors(const std::vector<std::string_view>& texts) {
  std::vector<Selector> parsed;
  for (const std::string_view text : texts) {
    parsed.push_back(std::get<Selector>(parse_selector(text)));
  }
  return parsed;
}

Policy keeping(const std::vector<std::string_view>& texts) {
  Policy policy;
  policy.save = selectors(texts);
  return policy;
}

std::vector<CatalogueEntry> save_list_policies() {
  return {
      {"attn_only", "keep fused attention and collectives, recompute the rest of each block",
       [] {
         return keeping({"attention_forward", "collective"});
       }},
      {"attn_only_v1",
       "keep fused attention and reduce-scatter, recompute the rest: the first version of "
       "attn_only",
       [] {
         return keeping({"attention_forward", "_c10d_functional::reduce_scatter_tensor"});
       }},
      // Language models name the scope `attention`, and DiTs `self_attention`.
      {"attn_only_self",
       "keep fused self attention, recompute cross attention and the rest of each block",
       [] {
         return keeping({in_scope({scope_names::kAttention}, "attention_forward"),
                         in_scope({scope_names::kSelfAttention}, "attention_forward")});
       }},
      {"ops_block",
       "keep only fused attention, one region per block: FastVideo's ops mode as proposed",
       [] { return keeping({"attention_forward"}); }},
      {"save_mm", "keep mm, addmm and bmm, recompute the rest of each block",
       [] {
         return keeping({"aten::mm", "aten::addmm", "aten::bmm"});
       }},
      // PyTorch's partitioner calls this list compute_intensive_ops.
      {"save_compute", "keep what is costly to compute: matmuls, convolutions, attention",
       [] {
         return keeping({"aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_mm",
                         "aten::convolution", "aten::convolution_backward",
                         "aten::convolution_overrideable", "aten::upsample_bilinear2d",
                         "aten::_scaled_dot_product_flash_attention",
                         "aten::_scaled_dot_product_efficient_attention",
                         "aten::_flash_attention_forward", "aten::_efficient_attention_forward"});
       }},
  };
}

}  // namespace rematch
