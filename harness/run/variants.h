// The variants of one command: each policy under each schedule. Variants are resolved, checked and
// predicted on meta before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/shard.h"
#include "harness/training/training.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/given_plan.h"
#include "policies/plan/policy.h"
#include "reports/record/step_predictor.h"

namespace rematch {

struct VariantSettings {
  ModelSpec model;
  std::vector<Policy> policies;
  std::vector<GivenPlan> plans;  // plans read from files, used unchanged
  // If empty, each plan has the schedule that it was searched for, or else usual_schedule() of its
  // policy.
  std::vector<Schedule> schedules;
  NoEffect no_effect = NoEffect::kReject;
  std::string device = "cpu";
  std::string attention = "flash";
  bool libtorch_chooses_attention = false;  // used only for timing on CUDA
  std::string allocator;                    // if empty, the device's default allocator
  Determinism timed_as = Determinism::kFastest;
  OptimizerChoice optimizer;
  std::string data_file;
  std::uint64_t seed = 0;
  int threads = 1;
  // A rank of the model's layout that one process simulates. If absent, all ranks run.
  std::optional<int> pretended_rank;
  // The share of a split run that this command measures. Every share measures policy `reference`,
  // because points are compared only with a reference that was timed in the same run.
  Shard shard;
  std::string reference;
  // Predicted sizes are rounded up to a multiple of this number, as the device's allocator rounds
  // them: see memory.h.
  std::int64_t round = 1;
};

struct Variant {
  bool of_this_shard = true;  // if false, only the identity is filled
  std::string policy;
  Plan plan;
  PointIdentity identity;
  EffectRecord effect;
  std::vector<std::string>
      warnings;  // warnings about the plan's policy; empty for plans from files
  PredictedStep prediction;
  std::int64_t step_flops = 0;  // flops of matmul and attention, including recompute
};

// Traces the settings' model. Throws std::invalid_argument for unusable data. Installs the counting
// allocators.
TracedModel trace_of_model(const VariantSettings& settings);

// Returns the variants ordered by policy, then by schedule. A plan without regions has no schedule
// and appears once. A plan file is skipped if a policy or an earlier file has given the same plan
// under the same name. Adds a policy that resolve() rejects to `refused` if the reference and
// another policy remain; otherwise returns Rejected. Returns Rejected for a plan that was made for
// another model. Throws std::invalid_argument for unusable data. Installs the counting allocators.
std::variant<std::vector<Variant>, Rejected> make_variants(const VariantSettings& settings,
                                                           std::vector<RefusedPolicy>& refused);
// Like the function above, but returns Rejected for any policy that resolve() rejects.
std::variant<std::vector<Variant>, Rejected> make_variants(const VariantSettings& settings);
// Like the two functions above, for a caller that already has the result of trace_of_model(). If
// `refused` is null, returns Rejected for any policy that resolve() rejects.
std::variant<std::vector<Variant>, Rejected> make_variants(const VariantSettings& settings,
                                                           const TracedModel& model,
                                                           std::vector<RefusedPolicy>* refused);

// Returns the identity that a refused policy has in a report. A refused policy has no plan, so the
// hash of its name stands for the plan's hash.
PointIdentity refused_identity(const VariantSettings& settings, const std::string& policy);

// Concatenates the warnings of all variants, in order.
std::vector<std::string> warnings_of(const std::vector<Variant>& variants);

// Returns a text such as "attn_only, on_demand", or only the policy if the plan has no regions.
std::string describe_variant(const Variant& variant);

}  // namespace rematch
