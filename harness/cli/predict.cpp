#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/files/profile_card.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/predicted_steps.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/stages.h"
#include "policies/catalogue/systems.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/pipeline/step_time.h"
#include "reports/record/step_predictor.h"

namespace rematch {
namespace {

void require_consistent(const PredictFlags& flags) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to predict: give --policy none,full,... or --plan FILE");
  }
  if (flags.any_card && flags.profile_file.empty()) {
    throw UsageError("--any-card requires --profile FILE");
  }
  reject_plans(flags.policies);
  if (!flags.device.empty() && find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
  if (!flags.links_file.empty()) {
    if (flags.device.empty() || !flags.profile_file.empty()) {
      throw UsageError(
          "--links replaces the link times of a data sheet; use --links with --device h100");
    }
    require_links(flags.links_file, flags.device);
  }
  if (!flags.ceilings_file.empty()) {
    require_ceilings(flags.ceilings_file, flags.device, !flags.profile_file.empty());
  }
  if (!flags.trace_file.empty() && flags.round_512) {
    throw UsageError("the sizes of a stored trace cannot be rounded; leave out --round-512");
  }
}

// Returns the ranks and the optimizer of the predicted steps. Flags override the settings of the
// front, if a plan comes from a front.
FrontSetting setting_of(const PredictFlags& flags) {
  FrontSetting setting;
  if (const auto of_front = setting_of_fronts(flags.plan_files)) setting = *of_front;
  if (!flags.trace_file.empty()) {
    if (const auto world = flags.model.ranks_of_trace(flags.trace_file)) setting.world = *world;
  } else if (setting.world > 1) {
    throw UsageError("'" + flags.plan_files.front() + "' was estimated from a trace for one of " +
                     std::to_string(setting.world) + " ranks; give that trace with --trace");
  }
  if (flags.optimizer_option->count() != 0) {
    setting.optimizer = parse_optimizer_kind(flags.optimizer);
  }
  return setting;
}

TracedModel traced_model(const PredictFlags& flags, const std::vector<GivenPlan>& plans,
                         OptimizerKind optimizer) {
  if (!flags.trace_file.empty()) {
    return {.trace = obtain_trace(flags.model, flags.trace_file)};
  }
  return trace_for_prediction(model_for(flags.model, first_of(plans)), optimizer,
                              flags.round_512 ? Sizes::kAsCudaRounds : Sizes::kExact);
}

void add_policies(const PredictFlags& flags, const TracedModel& model,
                  const StageResolver& resolver, std::vector<GivenPlan>& plans,
                  std::vector<RefusedPolicy>& refused) {
  if (flags.policies.empty()) return;
  const NoEffect no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  for (const Policy& policy : require(parse_policies(flags.policies, refused))) {
    auto plan = resolver.resolve(policy, no_effect);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) {
      refused.push_back({policy.name, rejected->message});
      continue;
    }
    plans.push_back({std::get<Plan>(std::move(plan)), std::nullopt});
    print_warnings(plan_warnings(policy, plans.back().plan, model.trace));
  }
}

// Returns the plans of the policies, then those of `files`.
std::vector<GivenPlan> plans_for(const PredictFlags& flags, const TracedModel& model,
                                 std::vector<GivenPlan> files,
                                 std::vector<RefusedPolicy>& refused) {
  std::vector<GivenPlan> plans;
  const StageResolver resolver(traces_of_stages(model));
  add_policies(flags, model, resolver, plans, refused);
  for (std::size_t index = 0; index < files.size(); ++index) {
    GivenPlan& given = files[index];
    if (resolver.num_stages() > 1) {
      const auto wrong = resolver.wrong_stages(given.plan, "'" + flags.plan_files[index] + "'");
      if (wrong) throw UsageError(wrong->message);
    } else {
      given.plan = plan_of_trace(given.plan, resolver.first().trace_sha256());
      require_same_trace(given.plan, flags.plan_files[index], model.trace);
    }
    if (!is_among(plans, given.plan)) plans.push_back(std::move(given));
  }
  if (plans.empty() && !refused.empty()) throw UsageError(refused.front().reason);
  return plans;
}

// Returns the profiles of all stages; one for a model without stages. Empty without times.
std::vector<Profile> profiles_of(const PredictFlags& flags, const std::vector<GivenPlan>& files,
                                 const TracedModel& model) {
  std::vector<Profile> profiles;
  if (flags.device.empty() && flags.profile_file.empty()) return profiles;
  if (!model.later_stages.empty() && !flags.profile_file.empty()) {
    profiles = profiles_of_stages(flags.profile_file, model_for(flags.model, first_of(files)),
                                  traces_of_stages(model));
    if (!flags.any_card) {
      require_card(profiles.front(), flags.profile_file, {flags.device, "", cards_here()});
    }
    return profiles;
  }
  for (const Trace* trace : traces_of_stages(model)) {
    profiles.push_back(profile_of(flags, *trace).value());
  }
  return profiles;
}

// Runs each plan under `schedules`. If `schedules` is empty, runs each plan under its own schedule.
std::vector<PredictedStep> predict_steps(StepPredictor& predictor,
                                         const std::vector<GivenPlan>& plans,
                                         const std::vector<Schedule>& schedules) {
  std::vector<PredictedStep> predicted;
  for (const auto& [plan, own_schedule] : plans) {
    const Schedule usual = own_schedule.value_or(usual_schedule(plan.policy));
    for (const Schedule schedule : schedules.empty() ? std::vector{usual} : schedules) {
      predicted.push_back(predictor.predict(plan, schedule));
      if (plan.regions.empty()) break;
    }
  }
  return predicted;
}

// Adds a note about memory that the predicted peaks exclude.
void add_notes(const PredictFlags& flags, OptimizerKind optimizer,
               const std::optional<Profile>& profile, std::vector<PredictedStep>& steps) {
  const std::optional<Bytes> temporary = profile ? most_temporary(*profile) : std::nullopt;
  for (PredictedStep& step : steps) {
    // A GPU's allocator also counts the temporaries inside kernels, which no trace contains.
    if (flags.round_512) step.memory.peak_transient = temporary;
    if (flags.round_512 && !temporary) step.memory.predicted_peak_note = kTemporariesNotMeasured;
    if (optimizer == OptimizerKind::kMuon) {
      step.memory.predicted_peak_note = "excludes what muon allocates in its update";
    }
  }
}

ExitCode predict(const PredictFlags& flags) {
  require_consistent(flags);
  const FrontSetting setting = setting_of(flags);
  const std::vector<Schedule> schedules = parse_schedules(flags.schedule);
  std::vector<GivenPlan> files = require_given_plans(flags.plan_files);
  const TracedModel traced = traced_model(flags, files, setting.optimizer);
  const std::vector<Profile> profiles = profiles_of(flags, files, traced);
  const std::optional<Profile> profile =
      profiles.empty() ? std::nullopt : std::optional(profiles.front());
  if (profile && setting.world > 1) {
    throw UsageError(
        "with --trace, --world counts no communication, so step times cannot be predicted; leave "
        "out --world, give --model instead of --trace, or predict without times");
  }
  std::vector<RefusedPolicy> refused;
  const std::vector<GivenPlan> plans = plans_for(flags, traced, std::move(files), refused);
  PredictorSettings settings{.optimizer = setting.optimizer,
                             .world = setting.world,
                             .profile = profile ? &*profile : nullptr};
  for (std::size_t later = 1; later < profiles.size(); ++later) {
    settings.later_profiles.push_back(&profiles[later]);
  }
  if (profiles.size() > 1) {
    const DeviceSheet* sheet = find_device_sheet(flags.device);
    settings.passing = passing_between(traced.later_stages.front().trace,
                                       sheet != nullptr ? sheet : sheet_of(*profile));
  }
  StepPredictor predictor(traced, settings);
  std::vector<PredictedStep> steps = predict_steps(predictor, plans, schedules);
  add_notes(flags, setting.optimizer, profile, steps);
  return print_predictions(with_refused(std::move(steps), refused), traced.trace, profile, setting,
                           card_memory(flags, traced.trace, profile, setting.world), flags.json);
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  add_command<PredictFlags>(
      app, action, "predict",
      "Predicts a step's peak memory, what the peak contains, and the executed ops", predict,
      "Examples:\n"
      "  rematch predict --model llama3_8b --policy none,full,attn_only --schedule both\n"
      "  rematch predict --model llama3_8b --dtype bfloat16 --policy none,full --world 8 "
      "--device h100\n"
      "  rematch predict --model deepseek_v3_16b --parallel fsdp=8,ep=8 --routing-skew 1.3 "
      "--policy full\n"
      "  rematch predict --model llama3_8b --dtype bf16 --parallel fsdp=8 --policy none,full \\\n"
      "      --device h100 --links node.links.json\n"
      "  rematch predict --model llama3_1b --dtype bf16 --policy none,full --device h200 \\\n"
      "      --ceilings ceilings.json\n"
      "  rematch predict --model llama3_8b --dtype bf16 --policy none,full \\\n"
      "      --accumulate 8 --gradient-dtype float32\n"
      "  rematch predict --model llama3_8b --dtype bf16 --parallel pp=4,micro=8 \\\n"
      "      --policy none,full --device h100\n"
      "  rematch predict --plan front.json#4\n"
      "  rematch predict --trace model.trace.json --policy none,full,save_mm\n"
      "  rematch predict --model llama3_1b --policy none,full --round-512 --profile "
      "gpu.profile.json\n"
      "  rematch predict --model wan_1_3b --video 77x480x832 --policy 'nth_first(2)' --json");
}

}  // namespace rematch
