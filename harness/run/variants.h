// The variants of one command: each policy under each schedule. Variants are resolved, checked and
// predicted on meta before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/run_settings.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "reports/record/step_predictor.h"

namespace rematch {

struct Variant {
  // If false, another shard measures this variant, and only `identity` is filled.
  bool of_this_shard = true;
  std::string policy;
  Plan plan;
  PointIdentity identity;
  EffectRecord effect;
  std::vector<std::string>
      warnings;  // warnings about the plan's policy; empty for plans from files
  PredictedStep prediction;
  std::int64_t step_flops = 0;  // flops of matmul and attention, including recompute
};

// Traces the request's model. Throws std::invalid_argument for unusable data. Installs the counting
// allocators.
TracedModel trace_of_model(const RunSettings& settings);

// Returns the variants ordered by policy, then by schedule. A plan without regions appears once,
// because it has no schedule. Skips a plan file if a policy or an earlier file has the same plan
// under the same name. If resolve() rejects a policy, adds the policy to `refused`. Returns
// Rejected instead if `refused` is null, if the policy is the reference, or if only the reference's
// plan remains. Also returns Rejected for a plan that was made for another model.
std::variant<std::vector<Variant>, Rejected> make_variants(const RunSettings& settings,
                                                           const TracedModel& model,
                                                           std::vector<RefusedPolicy>* refused);
// Traces the model, and returns its variants as the function above does. Returns Rejected for any
// policy that resolve() rejects.
std::variant<std::vector<Variant>, Rejected> make_variants(const RunSettings& settings);

// Returns the identity of a refused policy in a report. Because such a policy has no plan, its name
// is hashed instead.
PointIdentity refused_identity(const RunSettings& settings, const std::string& policy);

// Concatenates the warnings of all variants, in order.
std::vector<std::string> warnings_of(const std::vector<Variant>& variants);

// Returns a text such as "attn_only, on_demand", or only the policy if the plan has no regions.
std::string describe_variant(const Variant& variant);

}  // namespace rematch
