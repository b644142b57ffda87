#include "harness/run/variants.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "harness/run/prediction/prediction.h"
#include "harness/run/runnable_schedule.h"
#include "harness/training/device.h"
#include "models/preset/parallel.h"
#include "policies/base/hashing.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/stages.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/warnings.h"
#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

// A plan and the name that the report uses for it.
struct NamedPlan {
  Plan plan;
  bool no_effect_is_intended = false;
  std::vector<std::string> warnings;
  std::vector<Schedule> schedules;
};

std::string data_identity(const RunRequest& request) {
  if (request.data_file.empty()) return "builtin";
  std::ifstream file(request.data_file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return "sha256:" + sha256_hex(bytes);
}

PointIdentity shared_identity(const RunSettings& settings) {
  const RunRequest& request = settings.request;
  PointIdentity identity;
  identity.model = request.model.preset;
  identity.dimensions = request.model.dimensions;
  identity.data = data_identity(request);
  identity.ops = request.model.option("fused_ops") == 1 ? "fused" : "eager";
  identity.seed = request.seed;
  identity.attention_backend = settings.attention;
  identity.dtype = request.model.dtype;
  identity.optimizer = to_string(request.optimizer);
  identity.threads = settings.threads;
  identity.world = static_cast<int>(world_size(request.model));
  identity.pretended_rank = request.pretended_rank;
  identity.allocator = settings.allocator.empty()
                           ? std::get<std::string>(allocator_of(request.device, "", ""))
                           : settings.allocator;
  return identity;
}

std::vector<Schedule> schedules_of(const RunRequest& request, const GivenPlan& given) {
  if (!request.schedules.empty()) return request.schedules;
  return {given.schedule.value_or(usual_schedule(given.plan.policy))};
}

std::variant<NamedPlan, Rejected> resolved(const RunRequest& request, const Policy& policy,
                                           const Trace& trace, const StageResolver& resolver) {
  std::variant<Plan, Rejected> plan = resolver.resolve(policy, request.no_effect);
  if (auto* rejected = std::get_if<Rejected>(&plan)) return *rejected;
  std::vector<std::string> warnings = plan_warnings(policy, std::get<Plan>(plan), trace);
  std::vector<Schedule> schedules = schedules_of(request, {std::get<Plan>(plan), std::nullopt});
  return NamedPlan{std::get<Plan>(std::move(plan)), policy.no_effect_is_intended,
                   std::move(warnings), std::move(schedules)};
}

std::optional<Rejected> wrong_model(const Plan& plan, const std::string& name, const Trace& trace,
                                    const StageResolver& resolver) {
  if (resolver.num_stages() > 1) return resolver.wrong_stages(plan, name);
  return wrong_trace(plan, name, trace, resolver.first().trace_sha256());
}

std::variant<std::vector<NamedPlan>, Rejected> resolve_all(const RunRequest& request,
                                                           const Trace& trace,
                                                           const StageResolver& resolver,
                                                           std::vector<RefusedPolicy>* refused) {
  std::vector<NamedPlan> plans;
  for (const Policy& policy : request.policies) {
    auto plan = resolved(request, policy, trace, resolver);
    if (auto* rejected = std::get_if<Rejected>(&plan)) {
      if (refused == nullptr || policy.name == request.reference) return *rejected;
      refused->push_back({policy.name, rejected->message});
      continue;
    }
    plans.push_back(std::get<NamedPlan>(std::move(plan)));
  }
  for (const GivenPlan& given : request.plans) {
    const Plan& plan = given.plan;
    const std::string name = "policy '" + plan.policy + "'";
    if (auto problem = wrong_model(plan, name, trace, resolver)) return *problem;
    if (is_among(plans, plan)) continue;
    plans.push_back({plan, /*no_effect_is_intended=*/true, {}, schedules_of(request, given)});
  }
  const bool only_reference = plans.size() == 1 && plans.front().plan.policy == request.reference;
  if (refused != nullptr && !refused->empty() && (plans.empty() || only_reference)) {
    return Rejected{refused->front().reason};
  }
  return plans;
}

EffectRecord effect_of(const NamedPlan& named, const StageResolver& resolver) {
  EffectRecord effect;
  const std::string& name = named.plan.policy;
  const bool is_extreme = name == kNonePolicy || name == kFullPolicy;
  effect.same_as = resolver.same_as(named.plan);
  effect.inexact_store = inexact_store(named.plan);
  effect.intended = is_extreme || (!effect.same_as.empty() && named.no_effect_is_intended);
  return effect;
}

// Backward runs two matmuls of the same size for each matmul of forward.
std::int64_t flops_without_recompute(const TracedModel& model) {
  std::int64_t flops = 0;
  for (const Trace* trace : traces_of_stages(model)) {
    for (const TracedOp& op : trace->ops) flops += 3 * op.flops;
  }
  return flops * micro_batches(model.trace);
}

}  // namespace

TracedModel trace_of_model(const RunSettings& settings) {
  return trace_model(settings.request.model, settings.request.optimizer, settings.request.data_file,
                     settings.request.seed, settings.round);
}

// Plans are resolved against the trace with unrounded sizes, so that they do not depend on a
// device.
std::variant<std::vector<Variant>, Rejected> make_variants(const RunSettings& settings) {
  return make_variants(settings, trace_of_model(settings), nullptr);
}

PointIdentity refused_identity(const RunSettings& settings, const std::string& policy) {
  PointIdentity identity = shared_identity(settings);
  identity.plan_sha256 = sha256_hex(policy);
  identity.schedule = Schedule::kWholeRegion;
  return identity;
}

std::variant<std::vector<Variant>, Rejected> make_variants(const RunSettings& settings,
                                                           const TracedModel& model,
                                                           std::vector<RefusedPolicy>* refused) {
  const Trace& trace = model.trace;
  if (!model.later_stages.empty() && settings.request.pretended_rank) {
    return Rejected{
        "--pretend-rank runs one rank alone, but a stage of a pipeline needs its neighbours; leave "
        "it out, or predict the stages with rematch predict"};
  }
  if (auto rejected = reject_unrunnable_schedule(trace.dimensions)) return *rejected;
  const StageResolver resolver(traces_of_stages(model));
  auto plans = resolve_all(settings.request, trace, resolver, refused);
  if (auto* rejected = std::get_if<Rejected>(&plans)) return *rejected;

  StepPredictor predictor(model, {.optimizer = settings.request.optimizer.kind});
  const PointIdentity shared = shared_identity(settings);
  std::vector<Variant> variants;
  std::size_t num_split = 0;
  for (const NamedPlan& named : std::get<std::vector<NamedPlan>>(plans)) {
    for (const Schedule schedule : named.schedules) {
      Variant variant;
      variant.policy = named.plan.policy;
      variant.plan = named.plan;
      variant.identity = shared;
      variant.identity.plan_sha256 = plan_sha256(named.plan);
      variant.identity.schedule = named.plan.regions.empty() ? Schedule::kWholeRegion : schedule;
      variant.warnings = named.warnings;
      variant.effect = effect_of(named, resolver);
      if (named.plan.policy != settings.request.reference) {
        variant.of_this_shard = takes(settings.request.shard, num_split++);
      }
      if (variant.of_this_shard) {
        variant.prediction = predictor.predict(named.plan, schedule);
        variant.step_flops = flops_without_recompute(model) + variant.prediction.recomputed_flops;
      }
      variants.push_back(std::move(variant));
      if (named.plan.regions.empty()) break;
    }
  }
  return variants;
}

std::vector<std::string> warnings_of(const std::vector<Variant>& variants) {
  std::vector<std::string> all;
  for (const Variant& variant : variants) {
    all.insert(all.end(), variant.warnings.begin(), variant.warnings.end());
  }
  return all;
}

std::string describe_variant(const Variant& variant) {
  if (variant.plan.regions.empty()) return variant.policy;
  return variant.policy + ", " + std::string(to_string(variant.identity.schedule));
}

}  // namespace rematch
