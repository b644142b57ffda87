#include "policies/export/call_place.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace rematch {
namespace {

constexpr std::string_view kApplyToModel = "import {M}\n{M}.apply(model)";
constexpr std::string_view kApplyToTransformer = "import {M}\n{M}.apply(transformer)";

// Read in the sources of the systems; torch, transformers and diffusers were run.
constexpr std::array kPlaces = {
    CallPlace{"torch",
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
    CallPlace{
        "torchtitan",
        "In the model's parallelize function,\n"
        "in place of apply_ac(model, ...): behind tensor parallel, before compile and FSDP. In "
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

std::string filled_in(std::string_view text, const std::string& module_name) {
  constexpr std::string_view kHole = "{M}";
  std::string filled(text);
  for (std::size_t at = filled.find(kHole); at != std::string::npos;
       at = filled.find(kHole, at + module_name.size())) {
    filled.replace(at, kHole.size(), module_name);
  }
  return filled;
}

}  // namespace

const CallPlace* find_call_place(std::string_view target) {
  const auto found = std::find_if(kPlaces.begin(), kPlaces.end(),
                                  [&](const CallPlace& place) { return place.target == target; });
  return found == kPlaces.end() ? nullptr : &*found;
}

std::string call_text(const CallPlace& place, const std::string& module_name) {
  std::string text(place.where);
  text += "\n";
  std::istringstream lines(filled_in(place.lines, module_name));
  for (std::string line; std::getline(lines, line);) {
    text += line.empty() ? "\n" : "\n    " + line;
  }
  return text;
}

}  // namespace rematch
