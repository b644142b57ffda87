#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/files/plan_files.h"
#include "harness/cli/files/profile_file.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/no_libtorch.h"
#include "harness/cli/predicted_plans.h"
#include "policies/base/suggest.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/step.h"
#ifdef REMATCH_LIBTORCH
#include "harness/measure/memory.h"
#include "harness/run/training/optimizer_memory.h"
#include "harness/run/variants.h"
#endif

namespace rematch {
namespace {

struct PredictFlags {
  explicit PredictFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--trace", trace_file, "Stored trace to use instead of --model");
    app.add_option("--policy", policies,
                   "Policies to compare, separated by commas; see rematch list");
    app.add_option(
        "--plan", plan_files,
        "Plan files, or points of a front such as front.json#3; instead of --policy or beside it");
    schedule_option = app.add_option("--schedule", schedule,
                                     "whole_region, on_demand or both (default: the schedule of "
                                     "the front that --plan names, else on_demand)");
    optimizer_option =
        app.add_option("--optimizer", optimizer,
                       "adamw, adamw(state=bfloat16), adamw8bit, muon, sgd, sgd(momentum=0.9) or "
                       "none (default: the optimizer of the front that --plan names, else adamw)");
    model.add_world(app);
    app.add_flag("--round-512", round_512, "Round sizes as CUDA's caching allocator does");
    app.add_option("--device", device,
                   "Also predict how long steps take, from the card's data sheet: h100, h200, "
                   "l40s, a100 or b200");
    app.add_option("--profile", profile_file,
                   "The same from a profile's times; with --round-512 also what kernels allocate "
                   "themselves, if it was measured on a GPU");
    app.add_flag("--allow-no-effect", allow_no_effect, "Accept plans that change nothing");
    app.add_flag("--json", json, "Print JSON instead of the table");
  }
  ModelFlags model;
  std::string trace_file;
  std::string policies;
  std::vector<std::string> plan_files;
  std::string schedule = "on_demand";
  const CLI::Option* schedule_option = nullptr;  // whether it was given
  std::string optimizer = "adamw";
  const CLI::Option* optimizer_option = nullptr;  // whether it was given
  bool round_512 = false;
  std::string device;
  std::string profile_file;
  bool allow_no_effect = false;
  bool json = false;
};

void require_consistent(const PredictFlags& flags) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to predict: give --policy none,full,... or --plan FILE");
  }
  if (!flags.profile_file.empty() && !flags.device.empty()) {
    throw UsageError("times are a profile's or a data sheet's; give --profile or --device");
  }
  if (!flags.device.empty() && find_device_sheet(flags.device) == nullptr) {
    throw UsageError(unknown_device(flags.device).message);
  }
  if (!flags.trace_file.empty() && flags.round_512) {
    throw UsageError("a trace has bytes as tensors ask for them; leave out --round-512");
  }
}

// Where times are from; nothing if no flag says.
std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) return require_profile(flags.profile_file, trace);
  if (flags.device.empty()) return std::nullopt;
  return roofline_profile(trace, *find_device_sheet(flags.device));
}

PredictedStepOf step_of(const Trace& trace, const std::optional<Profile>& profile) {
  return {trace.model, trace.dtype, trace.dimensions, profile ? &*profile : nullptr};
}

#ifdef REMATCH_LIBTORCH

// Bytes and counts are the engine's on meta, the rest follows from the trace.
std::vector<PredictedPlan> predicted_plans(const std::vector<Variant>& variants, const Trace& trace,
                                           const std::optional<Profile>& profile) {
  std::optional<StepSimulator> simulator;
  if (profile) simulator.emplace(trace).use_profile(*profile);
  std::vector<PredictedPlan> plans;
  for (const Variant& variant : variants) {
    const Schedule schedule = variant.identity.schedule;
    PredictedPlan& plan = plans.emplace_back();
    plan.policy = variant.policy;
    plan.schedule = schedule;
    plan.has_regions = !variant.plan.regions.empty();
    plan.plan_sha256 = variant.identity.plan_sha256;
    plan.counts = variant.prediction.counts;
    plan.memory = variant.prediction.memory;
    plan.traffic = predict_traffic(trace, variant.plan, schedule);
    if (simulator) plan.range = step_range(*simulator->simulate(variant.plan, schedule).time);
  }
  return plans;
}

// A GPU's allocator sees what kernels hold inside; meta does not.
void add_temporary(std::vector<Variant>& variants, std::optional<Bytes> temporary) {
  for (Variant& variant : variants) {
    MemoryRecord& memory = variant.prediction.memory;
    memory.peak_transient = temporary;
    if (!temporary) memory.predicted_peak_note = kTemporariesNotMeasured;
  }
}

bool is_run_here(OptimizerModel optimizer) {
  return optimizer == OptimizerModel::kAdamW || optimizer == OptimizerModel::kNothing;
}

// Settings that no flag gives are those of the plan's front, and a note says so.
FrontSetting setting_of(const PredictFlags& flags) {
  FrontSetting setting;
  if (const auto of_front = setting_of_fronts(flags.plan_files)) setting = *of_front;
  if (setting.world > 1) {
    throw UsageError("'" + flags.plan_files.front() + "' is of a trace, estimated for one of " +
                     std::to_string(setting.world) + " ranks; give that trace with --trace");
  }
  if (flags.optimizer_option->count() != 0) {
    const auto model = optimizer_model_from_string(flags.optimizer);
    setting.optimizer = model ? *model
                        : parse_optimizer(flags.optimizer).kind == OptimizerKind::kAdamW
                            ? OptimizerModel::kAdamW
                            : OptimizerModel::kNothing;
  }
  if (flags.round_512 && !is_run_here(setting.optimizer)) {
    throw UsageError(
        "such an optimizer's bytes are not rounded; leave out --round-512 or --optimizer");
  }
  return setting;
}

VariantSettings variant_settings(const PredictFlags& flags, const FrontSetting& asked) {
  VariantSettings settings;
  if (!flags.policies.empty()) settings.policies = require(parse_policies(flags.policies));
  for (const std::string& file : flags.plan_files) {
    settings.plans.push_back(require_plan(file));
  }
  settings.model = model_for(flags.model, settings.plans);
  settings.schedules = {asked.schedule};
  if (flags.schedule_option->count() != 0) settings.schedules = parse_schedules(flags.schedule);
  settings.optimizer =
      asked.optimizer == OptimizerModel::kAdamW ? OptimizerKind::kAdamW : OptimizerKind::kNothing;
  settings.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  settings.device = "meta";
  settings.simulate = false;
  if (flags.round_512) settings.round = kCudaRounding;
  return settings;
}

// Optimizers that do not run on meta are the simulator's.
void predict_other_optimizer(OptimizerModel optimizer, const Trace& trace,
                             std::vector<Variant>& variants) {
  if (is_run_here(optimizer)) return;
  predict_memory_with(optimizer, trace, variants);
  if (optimizer != OptimizerModel::kMuon) return;
  for (Variant& variant : variants) {
    variant.prediction.memory.predicted_peak_note = "without what muon allocates in its update";
  }
}

ExitCode predict_model(const PredictFlags& flags) {
  const FrontSetting asked = setting_of(flags);
  const VariantSettings settings = variant_settings(flags, asked);
  const Trace trace = record_trace(settings.model);
  const std::optional<Profile> profile = profile_of(flags, trace);
  std::vector<Variant> variants = require(make_variants(settings, trace));
  print_warnings(warnings_of(variants));
  if (flags.round_512) add_temporary(variants, profile ? most_temporary(*profile) : std::nullopt);
  predict_other_optimizer(asked.optimizer, trace, variants);
  print_predictions(predicted_plans(variants, trace, profile), step_of(trace, profile), asked,
                    flags.json);
  return ExitCode::kOk;
}

#else

ExitCode predict_model(const PredictFlags&) { refuse_without_libtorch("predict --model"); }

#endif

// What flags leave open is the front's that a plan is a point of.
FrontSetting setting_for_trace(const PredictFlags& flags) {
  FrontSetting setting;
  if (const auto of_front = setting_of_fronts(flags.plan_files)) setting = *of_front;
  if (const auto world = flags.model.ranks_of_trace(flags.trace_file)) setting.world = *world;
  if (flags.optimizer_option->count() == 0) return setting;
  const auto optimizer = optimizer_model_from_string(flags.optimizer);
  if (!optimizer) {
    throw UsageError("unknown optimizer '" + flags.optimizer + "'" +
                     did_you_mean(flags.optimizer, optimizer_model_names()));
  }
  setting.optimizer = *optimizer;
  return setting;
}

std::vector<Plan> plans_for_trace(const PredictFlags& flags, const Trace& trace) {
  std::vector<Plan> plans;
  if (!flags.policies.empty()) {
    const NoEffect no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
    for (const Policy& policy : require(parse_policies(flags.policies))) {
      plans.push_back(require(resolve(policy, trace, no_effect)));
      print_warnings(plan_warnings(policy, plans.back(), trace));
    }
  }
  for (const std::string& file : flags.plan_files) {
    plans.push_back(require_plan(file));
    require_same_trace(plans.back(), file, trace);
  }
  return plans;
}

ExitCode predict_trace(const PredictFlags& flags) {
  const FrontSetting setting = setting_for_trace(flags);
  const Trace trace = obtain_trace(flags.model, flags.trace_file);
  const std::vector<Schedule> schedules = flags.schedule_option->count() != 0
                                              ? parse_schedules(flags.schedule)
                                              : std::vector<Schedule>{setting.schedule};
  const std::optional<Profile> profile = profile_of(flags, trace);
  if (profile && setting.world > 1) {
    throw UsageError(
        "the estimate of a trace's ranks counts no communication, so it has no step time; leave "
        "out the times or --world, or give --model");
  }
  const PredictedStepOf step = step_of(trace, profile);
  print_predictions(
      predict_from_trace(trace, plans_for_trace(flags, trace), schedules, setting, step.profile),
      step, setting, flags.json);
  return ExitCode::kOk;
}

ExitCode predict(const PredictFlags& flags) {
  require_consistent(flags);
  return flags.trace_file.empty() ? predict_model(flags) : predict_trace(flags);
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "predict", "Peak bytes, who holds them, and executed ops of a step, without running it");
  auto flags = std::make_shared<PredictFlags>(*command);
  command->footer(
      "Examples:\n"
      "  rematch predict --model llama3_8b --policy none,full,attn_only --schedule both\n"
      "  rematch predict --model llama3_8b --dtype bfloat16 --policy none,full --world 8 "
      "--device h100\n"
      "  rematch predict --plan front.json#4\n"
      "  rematch predict --trace model.trace.json --policy none,full,save_mm\n"
      "  rematch predict --model llama3_1b --policy none,full --round-512 --profile "
      "gpu.profile.json\n"
      "  rematch predict --model wan_1_3b --video 77x480x832 --policy 'nth_first(2)' --json");
  command->callback([&action, flags] { action = [flags] { return predict(*flags); }; });
}

}  // namespace rematch
