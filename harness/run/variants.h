// The variants of one command: every policy under every schedule, resolved, checked and predicted
// on meta before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/run/prediction/prediction.h"
#include "harness/sweep/shard.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/policy.h"

namespace rematch {

struct VariantSettings {
  ModelSpec model;
  std::vector<Policy> policies;
  std::vector<Plan> plans;  // from files, as they are
  std::vector<Schedule> schedules = {Schedule::kOnDemand};
  NoEffect no_effect = NoEffect::kReject;
  std::string device = "cpu";
  std::string attention = "flash";
  bool libtorch_chooses_attention = false;  // for times on CUDA
  std::string allocator;                    // empty: what the device has without being asked
  Determinism timed_as = Determinism::kFastest;
  OptimizerChoice optimizer;
  std::string data_file;
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<int> pretended_rank;  // of the model's layout, in one process; nothing: all ranks
  // In a split run, what this share measures. Points of the policy `reference` are every
  // share's, since the others are held against them in one process's turns.
  Shard shard;
  std::string reference;
  // Predicted sizes are rounded up to it, as the device's allocator does: see memory.h.
  std::int64_t round = 1;
  // Also simulate each plan on the trace: the counts that a run's are held to, and its flops. It
  // takes longer than the step on meta.
  bool simulate = true;
};

struct Variant {
  bool of_this_shard = true;  // if not: its identity alone
  std::string policy;
  Plan plan;
  PointIdentity identity;
  EffectRecord effect;
  std::vector<std::string> warnings;  // of the plan's policy; plans from files have none
  Prediction prediction;              // the engine's step on meta
  // If simulated. Counts of one step: from trace and plan; the optimizer's from meta.
  CountsRecord predicted_counts;
  std::int64_t step_flops = 0;  // matmul and attention, recompute included
  std::int64_t recomputed_step_flops = 0;
};

// In the order of policies, schedules inside; a plan without regions has no schedule and comes
// once, as does a plan of a file that is a policy's, or another file's of that name. Rejected: what
// resolve() rejects, and a plan that was made for another model. Throws std::invalid_argument for
// data that cannot be used. Installs the counting allocators.
std::variant<std::vector<Variant>, Rejected> make_variants(const VariantSettings& settings);
// `trace` is that of the settings' model, with sizes as they are.
std::variant<std::vector<Variant>, Rejected> make_variants(const VariantSettings& settings,
                                                           const Trace& trace);

// Those of all variants, in order.
std::vector<std::string> warnings_of(const std::vector<Variant>& variants);

// "attn_only, on_demand"; the policy alone where there is no schedule to speak of.
std::string describe_variant(const Variant& variant);

}  // namespace rematch
