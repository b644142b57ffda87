#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/predicted_steps.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/device/sharding.h"
#include "policies/predict/step/step.h"
#include "reports/record/simulated_memory.h"

namespace rematch {
namespace {

void require_consistent(const PredictFlags& flags) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to predict: give --policy none,full,... or --plan FILE");
  }
  if (flags.any_card && flags.profile_file.empty()) {
    throw UsageError("--any-card requires --profile FILE");
  }
  if (!flags.device.empty() && find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
  if (!flags.links_file.empty()) {
    if (flags.device.empty() || !flags.profile_file.empty()) {
      throw UsageError("--links replaces the link of a data sheet; give it with --device h100");
    }
    require_links(flags.links_file, flags.device);
  }
  if (!flags.trace_file.empty() && flags.round_512) {
    throw UsageError("the sizes of a trace are not rounded; leave out --round-512");
  }
}

// Returns the ranks and the optimizer of the predicted steps. If a plan is a point of a front, the
// values without a flag come from the front.
FrontSetting setting_for_trace(const PredictFlags& flags) {
  FrontSetting setting;
  if (const auto of_front = setting_of_fronts(flags.plan_files)) setting = *of_front;
  if (const auto world = flags.model.ranks_of_trace(flags.trace_file)) setting.world = *world;
  if (flags.optimizer_option->count() != 0) {
    setting.optimizer = parse_optimizer_model(flags.optimizer);
  }
  return setting;
}

std::vector<GivenPlan> plans_for_trace(const PredictFlags& flags, const Trace& trace,
                                       std::vector<RefusedPolicy>& refused) {
  std::vector<GivenPlan> plans;
  if (!flags.policies.empty()) {
    const NoEffect no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
    const Resolver resolver(trace);
    for (const Policy& policy : require(parse_policies(flags.policies, refused))) {
      auto plan = resolver.resolve(policy, no_effect);
      if (const auto* rejected = std::get_if<Rejected>(&plan)) {
        refused.push_back({policy.name, rejected->message});
        continue;
      }
      plans.push_back({std::get<Plan>(std::move(plan)), std::nullopt});
      print_warnings(plan_warnings(policy, plans.back().plan, trace));
    }
  }
  for (const std::string& file : flags.plan_files) {
    GivenPlan given = require_given_plan(file);
    given.plan = plan_of_trace(given.plan, trace_sha256(trace));
    require_same_trace(given.plan, file, trace);
    plans.push_back(std::move(given));
  }
  if (plans.empty() && !refused.empty()) throw UsageError(refused.front().reason);
  return plans;
}

// Predicts the steps of plans for `trace`. Each plan runs under `schedules` or, if the list is
// empty, under the plan's own schedule. `profile` must hold the times of `trace`.
std::vector<PredictedStep> predict_from_trace(const Trace& trace,
                                              const std::vector<GivenPlan>& plans,
                                              const std::vector<Schedule>& schedules,
                                              const FrontSetting& setting,
                                              const std::optional<Profile>& profile) {
  ShardedStep sharded = shard_step(trace, setting.world);
  StepSimulator simulator(sharded.trace, setting.optimizer);
  simulator.use_gathered(std::move(sharded.gathered));
  if (profile) simulator.use_profile(*profile);
  std::vector<PredictedStep> predicted;
  for (const auto& [plan, own_schedule] : plans) {
    const Schedule usual = own_schedule.value_or(usual_schedule(plan.policy));
    for (const Schedule schedule : schedules.empty() ? std::vector{usual} : schedules) {
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

ExitCode predict_trace(const PredictFlags& flags) {
  const FrontSetting setting = setting_for_trace(flags);
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  const std::vector<Schedule> schedules = parse_schedules(flags.schedule);
  const std::optional<Profile> profile = profile_of(flags, trace);
  if (profile && setting.world > 1) {
    throw UsageError(
        "the estimate of a trace's ranks counts no communication, so it has no step time; leave "
        "out the times or --world, or give --model");
  }
  std::vector<RefusedPolicy> refused;
  const std::vector<GivenPlan> plans = plans_for_trace(flags, trace, refused);
  return print_predictions(
      with_refused(predict_from_trace(trace, plans, schedules, setting, profile), refused), trace,
      profile, setting, card_memory(flags, trace, profile, setting.world), flags.json);
}

ExitCode predict(const PredictFlags& flags) {
  require_consistent(flags);
  return flags.trace_file.empty() ? predict_model(flags) : predict_trace(flags);
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  add_command<PredictFlags>(
      app, action, "predict",
      "Predicts a step's peak bytes, their holders and its ops, without running it", predict,
      "Examples:\n"
      "  rematch predict --model llama3_8b --policy none,full,attn_only --schedule both\n"
      "  rematch predict --model llama3_8b --dtype bfloat16 --policy none,full --world 8 "
      "--device h100\n"
      "  rematch predict --model llama3_8b --dtype bf16 --parallel fsdp=8 --policy none,full \\\n"
      "      --device h100 --links node.links.json\n"
      "  rematch predict --plan front.json#4\n"
      "  rematch predict --trace model.trace.json --policy none,full,save_mm\n"
      "  rematch predict --model llama3_1b --policy none,full --round-512 --profile "
      "gpu.profile.json\n"
      "  rematch predict --model wan_1_3b --video 77x480x832 --policy 'nth_first(2)' --json");
}

}  // namespace rematch
