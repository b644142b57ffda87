// Tests MaxText's policies, which keep tensors by name. A policy must keep the same tensors,
// whichever ops compute them. See Note [MaxText's names] in
// policies/catalogue/families/maxtext.cpp.
#include "tests/support/catch.h"
#include "tests/support/policy_matrix.h"

namespace rematch::testing {
namespace {

std::vector<std::string> named_tensor_policies() {
  std::vector<std::string> policies = matrix_policies();
  std::erase_if(policies, [](const std::string& policy) {
    return !policy.starts_with("remat_") || policy.starts_with("remat_titan(");  // torchtitan's
  });
  return policies;
}

std::int64_t kept_bytes(const std::string& policy, const PolicyMatrix& model) {
  REQUIRE(model.plan_of(policy) != nullptr);
  return model.facts(policy).held.kept.count;
}

// Returns whether the policy applies to the model. Checks that the result is the same for `other`.
bool applies(const std::string& policy, const PolicyMatrix& model, const PolicyMatrix& other) {
  const bool has_plan = model.plan_of(policy) != nullptr;
  CHECK((other.plan_of(policy) != nullptr) == has_plan);
  return has_plan;
}

// With fused ops, a named tensor is computed by another op. If a part of the model computes in
// float32, an additional op follows.
TEST_CASE("named tensors are the same with fused ops, and take half the bytes in bfloat16") {
  const std::vector<MatrixModel> models = matrix_models();
  const std::size_t num_presets = models.size() / 2;
  for (std::size_t i = 0; i < num_presets; ++i) {
    MatrixModel narrow = models[i], narrow_fused = models[i + num_presets];
    narrow.dtype = narrow_fused.dtype = "bfloat16";
    const PolicyMatrix eager(models[i]), fused(models[i + num_presets]);
    const PolicyMatrix eager_narrow(narrow), fused_narrow(narrow_fused);
    for (const std::string& policy : named_tensor_policies()) {
      CAPTURE(models[i].preset, policy);
      if (!applies(policy, eager, fused)) continue;
      CHECK(kept_bytes(policy, fused) == kept_bytes(policy, eager));
      CHECK(kept_bytes(policy, fused_narrow) == kept_bytes(policy, eager_narrow));
      // The statistics of attention are float32 even in bfloat16.
      if (policy.find("context") != std::string::npos) continue;
      CHECK(2 * kept_bytes(policy, eager_narrow) == kept_bytes(policy, eager));
    }
  }
}

// The model adds the product of an adapter to the product of its linear layer. Only their sum is
// read, so neither product is kept.
TEST_CASE("named tensors are the same with adapters") {
  for (MatrixModel model : matrix_models()) {
    if (model.preset != "llama_small") continue;
    const PolicyMatrix plain(model);
    model.dimensions["adapter_rank"] = 4;
    const PolicyMatrix adapted(model);
    for (const std::string& policy : named_tensor_policies()) {
      CAPTURE(policy);
      if (!applies(policy, plain, adapted)) continue;
      CHECK(kept_bytes(policy, adapted) == kept_bytes(policy, plain));
    }
  }
}

}  // namespace
}  // namespace rematch::testing
