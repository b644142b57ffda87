#include "policies/export/system_config.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/export/hidden_ops.h"
#include "policies/export/plan_difference.h"

namespace rematch {
namespace {

// A mode of a training system. In `policy` and `lines`, {N} stands for a number of layers.
struct ConfigMode {
  std::string_view policy;  // catalogue name, or the system's spelling
  std::string_view lines;
};

struct ConfigTarget {
  std::string_view name;
  std::string_view where;  // the place where the user must put the lines
  std::vector<ConfigMode> modes;
};

const std::vector<ConfigTarget>& targets() {
  static const std::vector<ConfigTarget> kTargets = {
      {"transformers",
       "a call on the model, before the Trainer takes it; every_n_layers: transformers 5.23",
       {{"huggingface:gradient_checkpointing",
         "model.gradient_checkpointing_enable({\"use_reentrant\": False})"},
        {"nth_first({N})",
         "model.activation_checkpointing_enable({\"use_reentrant\": False}, "
         "every_n_layers={N})"}}},
      {"diffusers",
       "a call on the model",
       {{"diffusers:enable_gradient_checkpointing", "model.enable_gradient_checkpointing()"}}},
      {"torchtitan",
       "the table activation_checkpoint of the job's TOML, in releases before region-wise "
       "checkpointing",
       {{"titan:full", "[activation_checkpoint]\nmode = \"full\""},
        {"titan:selective",
         "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\""},
        {"titan(selective_ac_option={N})",
         "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"{N}\""}}},
      {"torchtune",
       "the recipe's YAML",
       {{"torchtune(enable_activation_checkpointing=true)",
         "enable_activation_checkpointing: true"},
        {"torchtune(ac_mode=selective,ac_option={N})",
         "enable_activation_checkpointing: false\nac_mode: selective\nac_option: {N}"}}},
      {"fastvideo",
       "the trainer's command line",
       {{"fastvideo:full", "--enable-gradient-checkpointing-type full"},
        {"fastvideo:ops", "--enable-gradient-checkpointing-type ops"}}},
      {"modalities",
       "the activation checkpointed model's config, next to layers_fqn",
       {{"modalities:full", "ac_variant: full_activation_checkpointing\nac_fun_params: {}"},
        {"modalities:selective_layer(ac_freq={N})",
         "ac_variant: selective_layer_activation_checkpointing\nac_fun_params:\n  ac_freq: {N}"},
        {"modalities:selective_op(ops.aten.mm.default)",
         "ac_variant: selective_op_activation_checkpointing\nac_fun_params:\n  save_ops_keys:\n"
         "    - ops.aten.mm.default"}}},
      {"axolotl",
       "the run's YAML; selective_checkpointing: axolotl 0.18",
       {{"axolotl(gradient_checkpointing=true,selective_checkpointing=true)",
         "gradient_checkpointing: true\nselective_checkpointing: true"},
        {"huggingface:gradient_checkpointing",
         "gradient_checkpointing: true\ngradient_checkpointing_kwargs:\n  use_reentrant: false"}}},
      {"megatron",
       "the trainer's command line",
       {{"megatron(recompute_granularity=full,recompute_method=block,recompute_num_layers={N})",
         "--recompute-granularity full --recompute-method block --recompute-num-layers {N}"},
        {"megatron(recompute_granularity=full,recompute_method=uniform,recompute_num_layers={N})",
         "--recompute-granularity full --recompute-method uniform --recompute-num-layers {N}"},
        {"megatron:recompute_activations",
         "--recompute-granularity selective --recompute-modules core_attn"}}},
  };
  return kTargets;
}

int most_layers(const Trace& trace) {
  std::map<std::string, int> layers;
  int most = 0;
  for (const TracedBlock& block : trace.blocks) most = std::max(most, ++layers[block.list]);
  return most;
}

// Finds the policy of a mode for this model. Returns nullopt if the model cannot have it.
std::optional<Plan> plan_of(const std::string& policy, const Trace& trace) {
  const auto parsed = parse_policy(policy);
  if (!std::holds_alternative<Policy>(parsed)) return std::nullopt;
  auto plan = resolve(std::get<Policy>(parsed), trace, NoEffect::kAllow);
  if (auto* resolved = std::get_if<Plan>(&plan)) return std::move(*resolved);
  return std::nullopt;
}

std::variant<std::string, Rejected> find_mode(const ConfigTarget& target, const Trace& trace,
                                              const Plan& plan) {
  const std::string system(target.name);
  std::optional<PlanDifference> nearest;
  std::string nearest_policy;
  for (const ConfigMode& mode : target.modes) {
    const bool has_number = mode.policy.find("{N}") != std::string_view::npos;
    const int most = has_number ? most_layers(trace) : 1;
    for (int number = 1; number <= most; ++number) {
      const std::string layers = std::to_string(number);
      const std::string policy = filled_in(mode.policy, "{N}", layers);
      const std::optional<Plan> does = plan_of(policy, trace);
      if (!does) continue;
      std::optional<PlanDifference> difference = difference_of(trace, plan, *does);
      if (!difference || difference->of_early_stop) {
        std::string text = "# " + plan.policy + " in " + system + ": " + std::string(target.where);
        if (difference) text += "\n# " + policy + ": " + difference->first;
        return text + "\n" + filled_in(mode.lines, "{N}", layers) + "\n";
      }
      if (nearest && nearest->num_ops <= difference->num_ops) continue;
      nearest = std::move(difference);
      nearest_policy = policy;
    }
  }
  const std::string closest =
      nearest ? "; the nearest is " + nearest_policy + ": " + nearest->first : "";
  return Rejected{"no mode of " + system + " is equivalent to the plan" + closest};
}

}  // namespace

std::vector<std::string_view> config_targets() {
  std::vector<std::string_view> names;
  for (const ConfigTarget& target : targets()) names.push_back(target.name);
  return names;
}

std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan) {
  const auto found = std::find_if(targets().begin(), targets().end(),
                                  [&](const ConfigTarget& known) { return known.name == target; });
  if (found == targets().end()) {
    return Rejected{"unknown target '" + std::string(target) + "'"};
  }
  if (plan.regions.empty()) {
    return Rejected{"the plan checkpoints nothing: leave the checkpointing of " +
                    std::string(target) + " off"};
  }
  if (auto problem = hidden_op_problem(trace, plan)) return Rejected{std::move(*problem)};
  return find_mode(*found, trace, plan);
}

namespace {

constexpr std::string_view kApplyToModel = "import {M}\n{M}.apply(model)";
constexpr std::string_view kApplyToTransformer = "import {M}\n{M}.apply(transformer)";

// The configuration lines are taken from the sources of the systems. Those of torch, transformers
// and diffusers were also run.
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
    CallPlace{"transformers",
              "Call apply() once, after from_pretrained()\n"
              "or from_config() and before Trainer takes the model; leave gradient_checkpointing "
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
              "place of the activation checkpointed one, before FSDP2 shards the model:",
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
