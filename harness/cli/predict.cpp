#include "harness/cli/commands.h"
#include "harness/cli/flag_values.h"
#include "harness/cli/model_flags.h"
#include "harness/cli/no_libtorch.h"
#include "harness/cli/output.h"
#include "harness/cli/plan_files.h"
#include "harness/cli/profile_file.h"
#include "harness/cli/require.h"
#include "policies/catalogue/catalogue.h"
#include "reports/record/parts_json.h"
#include "reports/render/format.h"
#include "reports/render/verdict.h"
#ifdef REMATCH_LIBTORCH
#include "harness/measure/memory.h"
#include "harness/run/rank_memory.h"
#include "harness/run/variants.h"
#include "policies/trace/json.h"
#endif

namespace rematch {
namespace {

struct Flags {
  explicit Flags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--policy", policies, "Policies, separated by commas");
    app.add_option(
        "--plan", plan_files,
        "Plan files, or points of a front such as front.json#3; instead of policies or with them");
    app.add_option("--schedule", schedule, "whole_region, on_demand or both");
    app.add_option("--optimizer", optimizer, "adamw, adamw(learning_rate=3e-4) or none");
    add_world_flag(app, world);
    app.add_flag("--round-512", round_512, "Sizes as CUDA's caching allocator counts them");
    app.add_option("--profile", profile_file,
                   "Of --round-512: a profile measured on a GPU, for what kernels allocate inside");
    app.add_flag("--allow-no-effect", allow_no_effect, "Also plans that change nothing");
    app.add_flag("--json", json, "As JSON");
  }
  ModelFlags model;
  std::string policies;
  std::vector<std::string> plan_files;
  std::string schedule = "on_demand";
  std::string optimizer = "adamw";
  int world = 1;
  bool round_512 = false;
  std::string profile_file;
  bool allow_no_effect = false;
  bool json = false;
};

#ifdef REMATCH_LIBTORCH

Json to_json(const Variant& variant, int world) {
  const Prediction& prediction = variant.prediction;
  Json counts = Json::object();
  for (int phase = 0; phase < kNumPhases; ++phase) {
    Json ops = Json::object();
    for (const auto& [op, executed] : prediction.counts.by_op[static_cast<std::size_t>(phase)]) {
      ops[op] = executed;
    }
    counts[std::string(to_string(static_cast<Phase>(phase)))] = std::move(ops);
  }
  MemoryRecord memory = prediction.memory;
  memory.timeline.reset();
  return {{"policy", variant.policy},
          {"schedule", to_string(variant.identity.schedule)},
          {"plan_sha256", variant.identity.plan_sha256},
          {"world", world},
          {"predicted_ops", std::move(counts)},
          {"predicted_memory", memory_to_json(memory)}};
}

std::int64_t count(const Variant& variant, Phase phase, OpClass op_class) {
  const auto& classes = variant.prediction.counts.by_class[static_cast<std::size_t>(phase)];
  const auto found = classes.find(op_class);
  return found == classes.end() ? 0 : found->second;
}

std::string to_text(const Variant& variant, int world) {
  const MemoryRecord& memory = variant.prediction.memory;
  const auto both = [&](OpClass op_class) {
    return std::to_string(count(variant, Phase::kForward, op_class)) + " + " +
           std::to_string(count(variant, Phase::kRecompute, op_class));
  };
  std::string text = describe_variant(variant);
  if (world > 1) {
    text += ", one of " + std::to_string(world) + " ranks, gathered parameters among `other`";
  }
  text.append("\n  peak ").append(format_bytes(memory.peak_allocated.value_or(Bytes{})));
  text.append(" in ").append(describe_place(memory));
  text.append(": ").append(describe_holders(memory));
  if (memory.peak_transient) {
    text.append("\n  kernels allocate at most ").append(format_bytes(*memory.peak_transient));
    text.append(" inside on top");
  }
  if (!memory.predicted_peak_note.empty()) {
    text.append("\n  ").append(memory.predicted_peak_note);
  }
  text.append("\n  after forward ").append(format_bytes(memory.after_forward.value_or(Bytes{})));
  text.append("\n  executed forward + recompute: attention ")
      .append(both(OpClass::kAttentionForward));
  text.append(", matmul ").append(both(OpClass::kMatmul)).append("\n");
  return text;
}

// A GPU's allocator sees what kernels hold inside; meta does not.
void add_temporary(std::vector<Variant>& variants, std::optional<Bytes> temporary) {
  for (Variant& variant : variants) {
    MemoryRecord& memory = variant.prediction.memory;
    memory.peak_transient = temporary;
    if (!temporary) memory.predicted_peak_note = kTemporariesNotMeasured;
  }
}

ExitCode predict(const Flags& flags) {
  VariantSettings settings;
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to predict: give --policy none,full,... or --plan FILE");
  }
  if (!flags.policies.empty()) settings.policies = require(parse_policies(flags.policies));
  for (const std::string& file : flags.plan_files) {
    settings.plans.push_back(require_plan(file));
  }
  settings.model = model_for(flags.model, settings.plans);
  if (flags.world > 1 && flags.round_512) {
    throw UsageError("a rank's bytes are not rounded; leave out --round-512 or --world");
  }
  if (!flags.profile_file.empty() && !flags.round_512) {
    throw UsageError(
        "--profile says what a GPU's kernels allocate inside; give --round-512 with it");
  }
  settings.schedules = parse_schedules(flags.schedule);
  settings.optimizer = parse_optimizer(flags.optimizer);
  settings.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  settings.device = "meta";
  settings.simulate = false;
  if (flags.round_512) settings.round = kCudaRounding;
  const Trace trace = record_trace(settings.model);
  std::optional<Bytes> temporary;  // nothing where it was not measured
  if (!flags.profile_file.empty()) {
    temporary = most_temporary(require_profile(flags.profile_file, trace));
  }
  std::vector<Variant> variants = require(make_variants(settings, trace));
  print_warnings(warnings_of(variants));
  if (flags.round_512) add_temporary(variants, temporary);
  if (flags.world > 1) {
    const bool is_adamw = settings.optimizer.kind == OptimizerKind::kAdamW;
    predict_rank_memory(variants, trace,
                        is_adamw ? OptimizerModel::kAdamW : OptimizerModel::kNothing, flags.world);
  }
  Json predictions = Json::array();
  for (const Variant& variant : variants) {
    if (flags.json) {
      predictions.push_back(to_json(variant, flags.world));
    } else {
      print(to_text(variant, flags.world));
    }
  }
  if (flags.json) print(predictions.dump(2) + "\n");
  return ExitCode::kOk;
}

#else

ExitCode predict(const Flags&) { refuse_without_libtorch("predict"); }

#endif

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "predict", "Peak bytes, who holds them, and executed ops of a step, without running it");
  auto flags = std::make_shared<Flags>(*command);
  command->footer(
      "Examples:\n"
      "  rematch predict --model llama3_8b --policy none,full,attn_only --schedule both\n"
      "  rematch predict --model llama3_8b --dtype bfloat16 --policy none,full --world 8\n"
      "  rematch predict --model llama3_1b --policy none,full --round-512 --profile "
      "gpu.profile.json\n"
      "  rematch predict --model wan_1_3b --video 77x480x832 --policy 'nth_first(2)' --json");
  command->callback([&action, flags] { action = [flags] { return predict(*flags); }; });
}

}  // namespace rematch
