#include "harness/cli/libtorch/predict_model.h"

#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/cli/predicted_steps.h"
#include "harness/measure/memory.h"
#include "harness/run/prediction/memory_fit.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "policies/predict/step/step.h"

namespace rematch {
namespace {

// Bytes and counts come from the engine's step on meta. All other figures follow from the trace.
std::vector<PredictedStep> predicted_steps(const std::vector<Variant>& variants, const Trace& trace,
                                           const std::optional<Profile>& profile) {
  std::optional<StepSimulator> simulator;
  if (profile) simulator.emplace(trace).use_profile(*profile);
  std::vector<PredictedStep> steps;
  for (const Variant& variant : variants) {
    const Schedule schedule = variant.identity.schedule;
    PredictedStep& step = steps.emplace_back();
    step.policy = variant.policy;
    step.schedule = schedule;
    step.has_regions = !variant.plan.regions.empty();
    step.plan_sha256 = variant.identity.plan_sha256;
    step.counts = variant.prediction.counts;
    step.memory = variant.prediction.memory;
    step.traffic = predict_traffic(trace, variant.plan, schedule);
    if (simulator) step.range = step_range(*simulator->simulate(variant.plan, schedule).time);
  }
  return steps;
}

// A GPU's allocator counts the temporaries inside kernels. A step on meta does not see them.
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

// Settings for which no flag is given come from the plan's front, and a note says so.
FrontSetting setting_of(const PredictFlags& flags) {
  FrontSetting setting;
  if (const auto of_front = setting_of_fronts(flags.plan_files)) setting = *of_front;
  if (setting.world > 1) {
    throw UsageError("'" + flags.plan_files.front() + "' was estimated from a trace for one of " +
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
        "--round-512 does not support this optimizer; leave out --round-512 or --optimizer");
  }
  return setting;
}

VariantSettings variant_settings(const PredictFlags& flags, const FrontSetting& asked,
                                 std::vector<RefusedPolicy>& refused) {
  VariantSettings settings;
  if (!flags.policies.empty()) {
    settings.policies = require(parse_policies(flags.policies, refused));
  }
  settings.plans = require_given_plans(flags.plan_files);
  settings.model = model_for(flags.model, first_of(settings.plans));
  settings.schedules = parse_schedules(flags.schedule);
  settings.optimizer =
      asked.optimizer == OptimizerModel::kAdamW ? OptimizerKind::kAdamW : OptimizerKind::kNothing;
  settings.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  settings.device = "meta";
  settings.simulate = false;
  if (flags.round_512) settings.round = kCudaRounding;
  return settings;
}

// The simulator predicts optimizers that do not run on meta.
void predict_other_optimizer(OptimizerModel optimizer, const Trace& trace,
                             std::vector<Variant>& variants) {
  if (is_run_here(optimizer)) return;
  predict_memory_with(optimizer, trace, variants);
  if (optimizer != OptimizerModel::kMuon) return;
  for (Variant& variant : variants) {
    variant.prediction.memory.predicted_peak_note = "excludes what muon allocates in its update";
  }
}

}  // namespace

ExitCode predict_model(const PredictFlags& flags) {
  const FrontSetting asked = setting_of(flags);
  std::vector<RefusedPolicy> refused;
  const VariantSettings settings = variant_settings(flags, asked, refused);
  const Trace trace = record_trace(settings.model);
  const std::optional<Profile> profile = profile_of(flags, trace);
  std::vector<Variant> variants = require(make_variants(settings, trace, &refused));
  print_warnings(warnings_of(variants));
  if (flags.round_512) add_temporary(variants, profile ? most_temporary(*profile) : std::nullopt);
  predict_other_optimizer(asked.optimizer, trace, variants);
  return print_predictions(with_refused(predicted_steps(variants, trace, profile), refused), trace,
                           profile, asked, card_memory(flags, trace, profile, /*world=*/1),
                           flags.json);
}

}  // namespace rematch
