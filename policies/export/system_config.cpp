#include "policies/export/system_config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/catalogue/systems.h"
#include "policies/export/hidden_ops.h"
#include "policies/export/plan_difference.h"

namespace rematch {
namespace {

// torch_remat has no configuration file. remat_file.h writes Python code for it instead.
constexpr std::string_view kRemat = "remat";

// Returns the modes of the system with all their values. If the plan's policy is already a mode of
// this system, that mode is first and keeps the user's values.
std::vector<FilledMode> candidates(const TrainingSystem& system, const Trace& trace,
                                   const Resolver& resolver, const Plan& plan) {
  std::vector<FilledMode> modes = filled_modes(system.name, trace, resolver);
  const auto own = filled_mode(plan.policy);
  if (own && own->entry->system == system.name && !own->configuration.empty()) {
    modes.insert(modes.begin(), *own);
  }
  return modes;
}

// Returns a comment line, such as "# titan:full (until June 2026): the mode re-runs ...", or an
// empty string if nothing needs a comment.
std::string comment_of(const FilledMode& mode, const std::optional<PlanDifference>& difference) {
  const std::string_view versions = mode.entry->versions;
  if (versions.empty() && !difference) return "";
  return "# " + mode.spelling + (versions.empty() ? "" : " (" + std::string(versions) + ")") +
         (difference ? ": " + difference->first : "") + "\n";
}

struct EquivalentMode {
  FilledMode mode;
  // Absent if the mode runs the same ops as the plan. Otherwise, the mode and the plan differ only
  // in recomputed ops whose results nothing needs.
  std::optional<PlanDifference> difference;
};

// Adds a mode to `found`, which has at most one mode for each range of versions. Prefers a mode
// that runs exactly the ops of the plan.
void add_mode(std::vector<EquivalentMode>& found, EquivalentMode added) {
  const auto same = std::find_if(found.begin(), found.end(), [&added](const EquivalentMode& known) {
    return known.mode.entry->versions == added.mode.entry->versions;
  });
  if (same == found.end()) {
    found.push_back(std::move(added));
  } else if (same->difference && !added.difference) {
    *same = std::move(added);
  }
}

bool has_same_ops(const std::vector<EquivalentMode>& found, std::string_view versions) {
  return std::any_of(found.begin(), found.end(), [versions](const EquivalentMode& known) {
    return known.mode.entry->versions == versions && !known.difference;
  });
}

// Writes one equivalent mode for each range of versions that has such a mode.
std::variant<std::string, Rejected> find_mode(const TrainingSystem& system, const Trace& trace,
                                              const Plan& plan) {
  std::optional<PlanDifference> nearest;
  std::string nearest_mode;
  std::vector<EquivalentMode> found;
  const Resolver resolver(trace);
  for (FilledMode& mode : candidates(system, trace, resolver, plan)) {
    const std::string_view versions = mode.entry->versions;
    if (has_same_ops(found, versions)) continue;
    const std::optional<Plan> does = plan_if_possible(mode.spelling, resolver);
    if (!does) continue;
    std::optional<PlanDifference> difference = difference_of(trace, plan, *does);
    if (!difference || difference->of_early_stop) {
      const bool is_answer = versions.empty() && !difference;
      add_mode(found, {std::move(mode), std::move(difference)});
      if (is_answer) break;
    } else if (!nearest || difference->num_ops < nearest->num_ops) {
      nearest = std::move(difference);
      nearest_mode = mode.spelling;
    }
  }
  const std::string target(system.target);
  if (found.empty()) {
    const std::string closest =
        nearest ? "; the nearest is " + nearest_mode + ": " + nearest->first : "";
    return Rejected{"no mode of " + target + " is equivalent to the plan" + closest};
  }
  std::string text = "# " + plan.policy + " in " + target + ": " + std::string(system.where) + "\n";
  for (const EquivalentMode& each : found) {
    text += comment_of(each.mode, each.difference) + each.mode.configuration + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string_view> config_targets() {
  std::vector<std::string_view> names;
  for (const TrainingSystem& system : training_systems()) {
    if (!system.target.empty() && system.target != kRemat) names.push_back(system.target);
  }
  return names;
}

std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan) {
  const TrainingSystem* system = system_of_target(target);
  if (system == nullptr) return Rejected{"unknown target '" + std::string(target) + "'"};
  if (plan.regions.empty()) {
    return Rejected{"the plan checkpoints nothing: leave the checkpointing of " +
                    std::string(target) + " off"};
  }
  if (auto problem = hidden_op_problem(trace, plan)) return Rejected{std::move(*problem)};
  return find_mode(*system, trace, plan);
}

namespace {

constexpr std::string_view kApplyToModel = "import {M}\n{M}.apply(model)";
constexpr std::string_view kApplyToTransformer = "import {M}\n{M}.apply(transformer)";

// The texts were taken from the source code of the systems. Only the texts for torch, transformers
// and diffusers were tested.
constexpr std::array kPlaces = {
    CallPlace{"torch",
              "Call apply() once, after the model is built and on its\n"
              "device, and before torch.compile, DDP, FSDP or a trainer wraps it; leave other "
              "gradient checkpointing of the model off:",
              kApplyToModel},
    CallPlace{"remat",
              "Call apply() once, after the model is built and on its\n"
              "device, and before torch.compile, DDP, FSDP or a trainer wraps it; leave other "
              "gradient checkpointing of the model off:",
              kApplyToModel},
    CallPlace{
        "transformers",
        "Call apply() once, after from_pretrained()\n"
        "or from_config() and before the model is passed to Trainer; leave gradient_checkpointing "
        "off, and use_cache=False:",
        kApplyToModel},
    CallPlace{"diffusers",
              "In the training script, in place of\n"
              "transformer.enable_gradient_checkpointing() and before accelerator.prepare():",
              kApplyToTransformer},
    CallPlace{"torchtitan",
              "In the model's parallelize function,\n"
              "instead of apply_ac(model, ...): after tensor parallel, before compile and FSDP. In "
              "the job's TOML\n[activation_checkpoint] mode = \"none\":",
              kApplyToModel},
    CallPlace{"torchtune",
              "In the recipe's _setup_model, in place of\n"
              "training.set_activation_checkpointing(model, ...). In its YAML "
              "enable_activation_checkpointing: false, and no ac_mode:",
              kApplyToModel},
    CallPlace{"fastvideo",
              "In the training pipeline, in place of\n"
              "apply_activation_checkpointing(transformer, ...); leave "
              "enable_gradient_checkpointing_type unset:",
              kApplyToTransformer},
    CallPlace{"modalities",
              "In a model component of your own, in\n"
              "place of the activation-checkpointed model, before FSDP2 shards the model:",
              kApplyToModel},
    CallPlace{"axolotl",
              "In a plugin, such as this plan_plugin.py.\n"
              "In the run's YAML plugins: [plan_plugin.Plan], and no gradient_checkpointing:",
              "import {M}\nfrom axolotl.integrations.base import BasePlugin\n\n"
              "class Plan(BasePlugin):\n    def post_model_load(self, cfg, model):\n        "
              "{M}.apply(model)"},
};

}  // namespace

const CallPlace* find_call_place(std::string_view target) {
  const auto found = std::find_if(kPlaces.begin(), kPlaces.end(),
                                  [&](const CallPlace& place) { return place.target == target; });
  return found == kPlaces.end() ? nullptr : &*found;
}

std::string call_text(const CallPlace& place, const std::string& module_name) {
  std::string text(place.where);
  text += "\n";
  std::istringstream lines(filled_in(place.lines, "{M}", module_name));
  for (std::string line; std::getline(lines, line);) {
    text += line.empty() ? "\n" : "\n    " + line;
  }
  return text;
}

}  // namespace rematch
