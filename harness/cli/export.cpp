#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/export/remat_file.h"
#include "policies/export/system_config.h"
#include "policies/export/torch_file.h"

namespace rematch {
namespace {

constexpr const char* kTorch = "torch";
constexpr const char* kRemat = "remat";

struct ExportFlags : OutputFlags {
  explicit ExportFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("plan", plan, "Plan file, or a point of a front such as front.json#3");
    app.add_option("--to", target,
                   "What will run the plan. torch: writes a Python file. remat: writes a Python "
                   "file that needs torch_remat. transformers, diffusers, torchtitan, torchtune, "
                   "fastvideo, modalities, axolotl or megatron: writes lines of the trainer's "
                   "configuration if one of its modes equals the plan; otherwise writes the Python "
                   "file for torch, whose first lines say where to call apply()");
    app.add_option("--trace", trace, "Stored trace of the plan's model");
    add_output_flags(app, "File to write (default: stdout)");
  }
  ModelFlags model;
  std::string plan;
  std::string target = kTorch;
  std::string trace;
};

void require_target(const std::string& target) {
  std::vector<std::string_view> known = config_targets();
  known.insert(known.begin(), {kTorch, kRemat});
  if (std::find(known.begin(), known.end(), target) != known.end()) return;
  throw UsageError("unknown target '" + target + "'" + did_you_mean(target, known));
}

Trace trace_of(const ExportFlags& flags, const Plan& plan) {
  Trace trace = flags.trace.empty() ? record_trace(model_for(flags.model, &plan))
                                    : obtain_trace(flags.model, flags.trace);
  require_same_trace(plan, flags.plan, trace);
  return trace;
}

// Returns the name of the Python module: the output's file name without its extension.
std::string module_name(const std::string& output) {
  const std::string stem = std::filesystem::path(output).stem().string();
  return stem.empty() ? "checkpointed" : stem;
}

// Throws UsageError if the plan needs on_demand recompute, which no trainer supports.
void require_whole_regions(const Plan& plan, Schedule schedule, const std::string& target) {
  if (schedule != Schedule::kOnDemand) return;
  for (const PlannedRegion& region : plan.regions) {
    if (plan.types[static_cast<std::size_t>(region.type)].whole_on_demand) continue;
    throw UsageError("region " + region.first_scope +
                     ": the plan was made for schedule on_demand, "
                     "and " +
                     target + " recomputes whole regions");
  }
}

// The exported text, and hints about it for stderr.
struct Exported {
  std::string text;
  std::vector<std::string> hints;
};

// Throws UsageError if the plan was made for a built-in model. No trainer has that model's modules
// and ops, so an exported Python file would raise Mismatch. `why` says why none of the target's
// modes matches the plan, and is empty if the target has no modes.
void require_own_model(const ExportFlags& flags, const Plan& plan, const std::string& why = "") {
  if (!is_preset(plan.model)) return;
  throw UsageError(
      why + (why.empty() ? "" : "; ") + "the plan was made for " + plan.model +
      ", a built-in model whose modules and ops no trainer has; trace your own model "
      "with rematch.trace() of the Python package, and make the plan with --trace" +
      (!why.empty() ? "; or let rematch search --for " + flags.target + " choose one of its modes"
                    : ""));
}

Exported as_file(const ExportFlags& flags, const CallPlace& place, const Trace& trace,
                 const Plan& plan, const TorchRegions& regions) {
  return {torch_file(trace, plan, regions, place, module_name(flags.output)), {}};
}

// Exports the plan as lines for the system's configuration, if one of the system's own modes
// matches the plan. Otherwise exports a Python file, if the system's training script can call one.
Exported for_system(const ExportFlags& flags, const Trace& trace, const Plan& plan) {
  auto lines = system_config(flags.target, trace, plan);
  if (auto* text = std::get_if<std::string>(&lines)) return {std::move(*text), {}};
  const std::string why = std::get<Rejected>(lines).message;
  if (plan.regions.empty()) throw UsageError(why);
  require_own_model(flags, plan, why);
  const CallPlace* place = find_call_place(flags.target);
  const auto regions = torch_regions(trace, plan, Schedule::kWholeRegion);
  const auto* rejected = std::get_if<Rejected>(&regions);
  if (place == nullptr)
    throw UsageError(why + (rejected == nullptr ? "; --to torch can export this plan" : ""));
  if (rejected != nullptr) {
    throw UsageError(why + "; a Python file cannot run this plan either: " + rejected->message);
  }
  Exported exported = as_file(flags, *place, trace, plan, std::get<TorchRegions>(regions));
  exported.hints = {why +
                    "; wrote a Python file instead; its first lines say where to call apply()"};
  return exported;
}

ExitCode run(const ExportFlags& flags) {
  if (flags.plan.empty()) {
    throw UsageError("export takes a plan: rematch export front.json#3 --to torch --trace FILE");
  }
  require_target(flags.target);
  const OutputFile output(
      flags.request({file_kind::kPython, file_kind::kText}, {flags.plan, flags.trace}));
  const Plan plan = require_plan(flags.plan);
  if (!plan.other_shapes.empty()) {
    throw UsageError("the plan has " + std::to_string(1 + plan.other_shapes.size()) +
                     " step shapes; export supports a single shape; give a plan for one shape");
  }
  reject_compiled_graph(plan.dimensions, flags.target);
  const Trace trace = trace_of(flags, plan);
  const auto setting = setting_of_fronts({flags.plan});
  // A point of a front names its schedule. Any other plan file can run under every schedule, so the
  // schedule that trainers support is used.
  const Schedule schedule = setting ? setting->schedule : Schedule::kWholeRegion;
  Exported exported;
  if (flags.target == kTorch) {
    require_own_model(flags, plan);
    exported = as_file(flags, *find_call_place(kTorch), trace, plan,
                       require(torch_regions(trace, plan, schedule)));
  } else if (flags.target == kRemat) {
    require_own_model(flags, plan);
    exported.text = remat_file(trace, plan, require(remat_modules(trace, plan, schedule)),
                               *find_call_place(kRemat), module_name(flags.output));
  } else {
    require_whole_regions(plan, schedule, flags.target);
    exported = for_system(flags, trace, plan);
  }
  write_output(flags.output, exported.text);
  print_hints(exported.hints);
  return ExitCode::kOk;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  add_command<ExportFlags>(
      app, action, "export",
      "Exports a plan to a trainer: as a Python file, or as lines of the trainer's configuration",
      run,
      "Examples:\n"
      "  rematch search --trace model.trace.json --device h100 --for torch -o front.json\n"
      "  rematch export front.json#3 --to torch --trace model.trace.json -o checkpointed.py\n"
      "  rematch plan --trace model.trace.json --policy 'remat(save=[self_attn])' -o remat.json\n"
      "  rematch export remat.json --to remat --trace model.trace.json -o checkpointed.py\n"
      "  rematch export model.plan.json --to torchtune --trace model.trace.json\n"
      "  rematch export front.json#3 --to torchtitan --trace model.trace.json -o checkpointed.py\n"
      "If a target cannot run the plan, the error names the region, or the first layer or op that\n"
      "differs from the target's nearest mode. megatron supports only its own modes.");
}

}  // namespace rematch
