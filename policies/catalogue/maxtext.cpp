// MaxText's remat policies: named tensors kept, the rest recomputed. They are JSON files over
// selectors (maxtext/*.json), which are also examples of how to write one's own.
//
// Note [MaxText's names]
// A name is on a tensor that a part of the model hands on, so where a part has a scope its name is
// the scope's result: the same tensor with eager and with fused ops, in the dtype in which it is
// read, with biases or adapters. query_proj and key_proj are named behind qk-norm and rotary
// embedding, so keeping them spares those too; value_proj is the third that qkv hands on; latent
// attention hands on its query in one scope, key and value in another. context is the attention's
// output with its statistics. mlpwi_0, mlpwi_1 and mlpwo are the matmuls of a gated feed-forward,
// in this order; one without a gate has two. mlpwi stay inside the scope, so they are its matmuls,
// and where those have adapters the sums. A branch's dropout is in its part's scope here, so with
// dropout the part hands on what that made, its mask too. Source: MaxText's layers/decoders.py,
// layers/attentions.py and configs/base.yml.
#include "policies/catalogue/families.h"
#include "policies/catalogue/remat_files.h"
#include "policies/plan/policy_json.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"

namespace rematch {
namespace {

Policy policy_of(std::string_view name) {
  for (const auto& [file, text] : remat_files()) {
    if (file == name) return policy_from_json(parse_json(text, std::string(file) + ".json"));
  }
  throw FormatError("no policy file " + std::string(name));
}

template <int kIndex>
Policy remat(const std::vector<int>&);

struct Row {
  const char* name;
  const char* description;
};

constexpr Row kRows[] = {
    {"remat_save_out_proj", "keep the attention's output projection"},
    {"remat_save_qkv_proj", "keep query and key behind rotary embedding, and value"},
    {"remat_save_dot_except_mlp", "keep query, key, value and the output projection"},
    {"remat_save_dot_except_mlpwi", "the same, and the output of dense feed-forwards"},
    {"remat_save_dot_with_context_except_mlp",
     "keep all of attention, nothing of the feed-forward"},
    {"remat_minimal",
     "keep query, key, value, the output projection and the matmuls of dense feed-forwards"},
    {"remat_minimal_with_context", "the same, and attention's output"},
};
constexpr int kNumRows = static_cast<int>(std::size(kRows));

template <int kIndex>
Policy remat(const std::vector<int>&) {
  return policy_of(kRows[kIndex].name);
}

template <int kIndex>
void add_rows(std::vector<PolicyFamilyEntry>& entries) {
  if constexpr (kIndex < kNumRows) {
    entries.push_back({{kRows[kIndex].name, "", kRows[kIndex].description, "MaxText"},
                       PolicyArguments::kNoArguments,
                       remat<kIndex>});
    add_rows<kIndex + 1>(entries);
  }
}

}  // namespace

const std::vector<PolicyFamilyEntry>& maxtext_policies() {
  static const std::vector<PolicyFamilyEntry> entries = [] {
    std::vector<PolicyFamilyEntry> list;
    add_rows<0>(list);
    return list;
  }();
  return entries;
}

}  // namespace rematch
