#include "harness/cli/predicted_plans.h"

#include <functional>
#include <utility>

#include "harness/cli/files/output.h"
#include "models/preset/parallel.h"
#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/plan/plan.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step.h"
#include "policies/trace/by_phase.h"
#include "reports/record/simulated_memory.h"
#include "reports/render/tables/prediction_table.h"

namespace rematch {
namespace {

std::int64_t plain_number(std::int64_t count) { return count; }
std::int64_t plain_number(Bytes bytes) { return bytes.count; }

template <class Member>
Json traffic_to_json(const Traffic& traffic, Member member) {
  Json json = Json::object();
  for (int phase = 0; phase < kNumPhases; ++phase) {
    Json kinds = Json::object();
    for (const auto& [kind, issued] : traffic[static_cast<std::size_t>(phase)]) {
      kinds[std::string(to_string(kind))] = plain_number(issued.*member);
    }
    json[std::string(to_string(static_cast<Phase>(phase)))] = std::move(kinds);
  }
  return json;
}

Json to_json(const PredictedPlan& plan, const Trace& trace, const std::optional<Profile>& profile,
             const FrontSetting& setting) {
  Json counts = Json::object();
  for (int phase = 0; phase < kNumPhases; ++phase) {
    Json ops = Json::object();
    for (const auto& [op, executed] : plan.counts.by_op[static_cast<std::size_t>(phase)]) {
      ops[op] = executed;
    }
    counts[std::string(to_string(static_cast<Phase>(phase)))] = std::move(ops);
  }
  MemoryRecord memory = plan.memory;
  memory.timeline.reset();
  const auto part_of_range = [&](auto part) {
    return plan.range ? Json(std::invoke(part, *plan.range).count()) : Json(nullptr);
  };
  return {{"policy", plan.policy},
          {"schedule", to_string(plan.schedule)},
          {"plan_sha256", plan.plan_sha256},
          {"world", setting.world * world_size(trace.dimensions)},
          {"optimizer", to_string(setting.optimizer)},
          {"predicted_ops", std::move(counts)},
          {"predicted_collectives", traffic_to_json(plan.traffic, &Issued::count)},
          {"predicted_sent_bytes", traffic_to_json(plan.traffic, &Issued::sent)},
          {"device", profile ? Json(profile->device) : Json(nullptr)},
          {"time_source", profile ? Json(to_string(profile->source)) : Json(nullptr)},
          {"links", profile && !profile->links.empty() ? Json(profile->links) : Json(nullptr)},
          {"predicted_compute_ns", part_of_range(&StepRange::compute)},
          {"predicted_communication_ns", part_of_range(&StepRange::communication)},
          {"predicted_step_time_ns", part_of_range(&StepRange::nothing_overlaps)},
          {"predicted_overlapped_step_time_ns", part_of_range(&StepRange::all_overlaps)},
          {"predicted_memory", to_value(memory)}};
}

std::int64_t count(const PredictedPlan& plan, Phase phase, OpClass op_class) {
  const auto& classes = plan.counts.by_class[static_cast<std::size_t>(phase)];
  const auto found = classes.find(op_class);
  return found == classes.end() ? 0 : found->second;
}

PredictedStep step_of(const PredictedPlan& plan) {
  PredictedStep step;
  step.policy = plan.policy;
  if (plan.has_regions) step.schedule = to_string(plan.schedule);
  step.memory = plan.memory;
  step.attention = count(plan, Phase::kForward, OpClass::kAttentionForward);
  step.attention_again = count(plan, Phase::kRecompute, OpClass::kAttentionForward);
  step.matmul = count(plan, Phase::kForward, OpClass::kMatmul);
  step.matmul_again = count(plan, Phase::kRecompute, OpClass::kMatmul);
  step.traffic = plan.traffic;
  step.range = plan.range;
  return step;
}

// "llama3_8b, bfloat16, batch 1, 8192 tokens, adamw; each of 8 ranks: fsdp=8"
std::string setting_words(const Trace& trace, const FrontSetting& setting) {
  std::string words = trace.model + ", " + trace.dtype;
  for (const char* name : {"batch", "tokens"}) {
    const auto found = trace.dimensions.find(name);
    if (found == trace.dimensions.end()) continue;
    words.append(", ").append(name).append(" ").append(std::to_string(found->second));
  }
  words.append(", optimizer ").append(to_string(setting.optimizer));
  if (const std::string layout = layout_text(trace.dimensions); !layout.empty()) {
    words += "; each of " + std::to_string(world_size(trace.dimensions)) + " ranks: " + layout;
  }
  if (setting.world > 1) {
    words += "; one of " + std::to_string(setting.world) +
             " ranks, estimated: gathered parameters among `other`, communication not counted";
  }
  return words;
}

}  // namespace

void print_predictions(const std::vector<PredictedPlan>& plans, const Trace& trace,
                       const std::optional<Profile>& profile, const FrontSetting& setting,
                       bool as_json) {
  if (as_json) {
    Json predictions = Json::array();
    for (const PredictedPlan& plan : plans) {
      predictions.push_back(to_json(plan, trace, profile, setting));
    }
    print_json(predictions);
    return;
  }
  std::vector<PredictedStep> steps;
  for (const PredictedPlan& plan : plans) steps.push_back(step_of(plan));
  const std::size_t columns = terminal_columns();
  print(predictions_to_text(setting_words(trace, setting), steps, columns) +
        traffic_to_text(steps, profile ? &*profile : nullptr, columns));
}

std::vector<PredictedPlan> predict_from_trace(const Trace& trace, const std::vector<Plan>& plans,
                                              const std::vector<Schedule>& schedules,
                                              const FrontSetting& setting,
                                              const std::optional<Profile>& profile) {
  ShardedStep sharded = shard_step(trace, setting.world);
  StepSimulator simulator(sharded.trace, setting.optimizer);
  simulator.use_gathered(std::move(sharded.gathered));
  if (profile) simulator.use_profile(*profile);
  std::vector<PredictedPlan> predicted;
  for (const Plan& plan : plans) {
    for (const Schedule schedule : schedules) {
      const StepPrediction step = simulator.simulate(plan, schedule);
      predicted.push_back(
          {.policy = plan.policy,
           .schedule = schedule,
           .has_regions = !plan.regions.empty(),
           .plan_sha256 = plan_sha256(plan),
           .counts = counts_of(predict_counts(trace, plan, schedule)),
           .memory = memory_of(step, sharded.trace),
           .traffic = predict_traffic(trace, plan, schedule),
           .range = step.time ? std::optional(step_range(*step.time)) : std::nullopt});
      if (plan.regions.empty()) break;
    }
  }
  return predicted;
}

}  // namespace rematch
