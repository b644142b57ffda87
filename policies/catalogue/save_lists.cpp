// Every block is a region in which the results of some ops are kept, the rest recomputed.
#include <initializer_list>

#include "policies/catalogue/families.h"

namespace rematch {
namespace {

Policy saves(std::initializer_list<const char*> ops) {
  Policy policy;
  for (const char* op : ops) policy.save.push_back({"", op, std::nullopt});
  return policy;
}

// Self and cross attention both; collectives as in FastVideo's second version.
Policy attn_only(const std::vector<int>&) { return saves({"attention_forward", "collective"}); }

// FastVideo's first version: of the collectives it kept one.
Policy attn_only_v1(const std::vector<int>&) {
  return saves({"attention_forward", "_c10d_functional::reduce_scatter_tensor"});
}

// A language model's attention is `attention`, a DiT's two are self_attention and cross_attention.
Policy attn_only_self(const std::vector<int>&) {
  Policy policy;
  policy.save = {{"*.attention", "attention_forward", std::nullopt},
                 {"*.self_attention", "attention_forward", std::nullopt}};
  return policy;
}

// What FastVideo's mode `ops` is to become: no matmul, no collective.
Policy ops_block(const std::vector<int>&) { return saves({"attention_forward"}); }

Policy save_mm(const std::vector<int>&) { return saves({"aten::mm", "aten::addmm", "aten::bmm"}); }

// The list of PyTorch's partitioner (compute_intensive_ops).
Policy save_compute(const std::vector<int>&) {
  return saves({"aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_mm", "aten::convolution",
                "aten::convolution_backward", "aten::convolution_overrideable",
                "aten::upsample_bilinear2d", "aten::_scaled_dot_product_flash_attention",
                "aten::_scaled_dot_product_efficient_attention", "aten::_flash_attention_forward",
                "aten::_efficient_attention_forward"});
}

}  // namespace

const std::vector<PolicyFamilyEntry>& save_list_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"attn_only", "", "keep fused attention and collectives, recompute the rest of each block",
        "FastVideo attn_only"},
       PolicyArguments::kNoArguments,
       attn_only},
      {{"attn_only_v1", "", "keep fused attention and reduce-scatter, recompute the rest",
        "FastVideo attn_only, first version"},
       PolicyArguments::kNoArguments,
       attn_only_v1},
      {{"attn_only_self", "", "keep fused self attention, recompute cross attention and the rest",
        "what FastVideo's 221 MB a block counts"},
       PolicyArguments::kNoArguments,
       attn_only_self},
      {{"ops_block", "", "keep fused attention alone, one region a block",
        "FastVideo ops, as proposed"},
       PolicyArguments::kNoArguments,
       ops_block},
      {{"save_mm", "", "keep mm, addmm and bmm, recompute the rest of each block",
        "PyTorch blog on selective checkpointing"},
       PolicyArguments::kNoArguments,
       save_mm},
      {{"save_compute", "", "keep what is costly to compute: matmuls, convolutions, attention",
        "PyTorch blog on selective checkpointing, compute_intensive_ops"},
       PolicyArguments::kNoArguments,
       save_compute},
  };
  return entries;
}

}  // namespace rematch
