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

Policy save_mm(const std::vector<int>&) { return saves({"aten::mm", "aten::addmm", "aten::bmm"}); }

// The list of PyTorch's partitioner (compute_intensive_ops), its attention ops as a class.
Policy save_compute(const std::vector<int>&) {
  return saves({"aten::mm", "aten::addmm", "aten::bmm", "aten::_scaled_mm", "aten::convolution",
                "aten::convolution_overrideable", "aten::upsample_bilinear2d",
                "attention_forward"});
}

}  // namespace

const std::vector<PolicyFamilyEntry>& save_list_policies() {
  static const std::vector<PolicyFamilyEntry> entries = {
      {{"attn_only", "", "keep fused attention and collectives, recompute the rest of each block",
        "FastVideo attn_only"},
       PolicyArguments::kNoArguments,
       attn_only},
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
