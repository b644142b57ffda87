#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/cli/libtorch/predict_model.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/sweep/predict_comparison.h"
#include "harness/sweep/sweep_file.h"
#include "models/preset/parallel.h"
#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxLines = 20;

struct SweepPlanFlags {
  explicit SweepPlanFlags(CLI::App& app) {
    app.add_option("file", file, "Sweep file, rematch.sweep/1.0")->required();
    app.add_option("folder", folder, "Folder of the sweep; all workers must see it")->required();
    app.add_option("--card", card, "Card from whose data sheet the times are predicted");
    app.add_option("--memory", memory,
                   "List the comparisons that do not fit into this much memory, such as 80GiB "
                   "(default: none)");
    app.add_option("--reserve", reserve,
                   "Part of --memory that tensors cannot use, such as 2GiB (default: none)");
    app.add_option("--stale", stale_after,
                   "A worker that is silent for this long is considered dead");
    app.add_flag("--json", json, "Print the plan as well");
  }
  std::string file;
  std::string folder;
  std::string card = "h100";
  std::string memory;
  std::string reserve;  // value of --reserve; if empty, tensors can use all of --memory
  std::string stale_after = "180s";
  bool json = false;
};

// Parses the comparison's arguments with the parser of `rematch run`, so that both commands accept
// the same arguments.
RunRequest require_request(const std::string& file, const PlannedComparison& comparison) {
  try {
    return request_of_arguments(comparison.arguments);
  } catch (const UsageError& error) {
    throw UsageError(file + ": run: " + error.what());
  }
}

// Returns the arguments of a comparison without the seed. The prediction depends only on these
// arguments.
std::string key_of(const PlannedComparison& comparison) {
  std::vector<std::string> words = comparison.arguments;
  const auto seed = std::find(words.begin(), words.end(), "--seed");
  words.erase(seed, seed + 2);
  return joined(words, "\n");
}

TracedModel traced_model(const ModelSpec& spec) {
  if (num_stages(spec.dimensions) == 1) return {.trace = record_trace(spec)};
  return trace_for_prediction(spec, OptimizerKind::kNothing, Sizes::kExact);
}

void predict(const SweepPlanFlags& flags, ComparisonPlan& plan) {
  const DeviceSheet* sheet = find_device_sheet(flags.card);
  if (sheet == nullptr) throw UsageError(unknown_device(flags.card).message);
  if (!has_libtorch()) return;
  std::map<std::string, ComparisonPrediction> known;
  // Only the last model is kept, because comparisons of one shape are adjacent in the file.
  std::optional<TracedModel> model;
  ModelSpec traced;
  const auto shape = [](const ModelSpec& spec) {
    return std::tie(spec.preset, spec.dtype, spec.dimensions);
  };
  for (PlannedComparison& comparison : plan.comparisons) {
    const auto [same, is_new] = known.try_emplace(key_of(comparison));
    if (is_new) {
      const RunRequest request = require_request(flags.file, comparison);
      // The layout of a pipeline is in the arguments only.
      const ModelSpec& spec =
          num_stages(request.model.dimensions) > 1 ? request.model : comparison.spec;
      if (!model || shape(traced) != shape(spec)) model = traced_model(spec);
      traced = spec;
      auto predicted = predict_comparison(request, traces_of_stages(*model), sheet);
      if (const auto* rejected = std::get_if<Rejected>(&predicted)) {
        throw UsageError(flags.file + ": " + comparison.path + ": " + comparison.spec.preset +
                         ": " + rejected->message);
      }
      same->second = std::get<ComparisonPrediction>(predicted);
    }
    comparison.predicted = same->second;
  }
}

// Writes the plan. Leaves an existing file with the same plan untouched, because workers may be
// reading it. Returns the id in the file, which an earlier version may have computed differently.
std::string write_plan(const std::string& folder, const ComparisonPlan& plan) {
  namespace fs = std::filesystem;
  const std::string file = plan_file_in(folder);
  std::error_code error;
  if (fs::exists(file, error)) {
    const ComparisonPlan there = require_comparison_plan(folder);
    if (comparison_plan_id(there) == plan.id) return there.id;
    throw UsageError(in_quotes(folder) + " holds another plan, " + there.id.substr(0, 12) +
                     ", not the plan of this file, " + plan.id.substr(0, 12) +
                     "; give each plan its own folder");
  }
  for (const char* part : {"claims", "log", "reports", "work"}) {
    fs::create_directories(folder + "/" + part, error);
    if (error) {
      throw UsageError("cannot make folder " + in_quotes(folder + "/" + part) + ": " +
                       error.message());
    }
  }
  write_json_file(file, plan_to_json(plan));
  return plan.id;
}

// Returns the memory for tensors: --memory minus --reserve. Absent if neither was given.
std::optional<Bytes> memory_of_tensors(const SweepPlanFlags& flags) {
  const std::optional<Bytes> reserve = parse_reserve(flags.reserve);
  if (flags.memory.empty()) {
    if (reserve) throw UsageError("--reserve requires --memory, from which it is subtracted");
    return std::nullopt;
  }
  require_unit("--memory", flags.memory);
  return memory_less_reserve(parse_bytes(flags.memory), reserve.value_or(Bytes{}));
}

void print_plan(const SweepPlanFlags& flags, const SweepFile& sweep, const ComparisonPlan& plan,
                const std::optional<Bytes>& limit) {
  std::int64_t num_points = 0;
  std::chrono::milliseconds total{0};
  std::chrono::milliseconds longest{0};
  for (const PlannedComparison& comparison : plan.comparisons) {
    num_points += comparison.num_points;
    const auto time = comparison.predicted.time.value_or(std::chrono::milliseconds(0));
    total += time;
    longest = std::max(longest, time);
  }
  std::string text = std::to_string(plan.comparisons.size()) + " comparisons, " +
                     std::to_string(num_points) + " points";
  if (sweep.num_duplicates > 0) {
    text += " (" + std::to_string(sweep.num_duplicates) + " duplicates dropped)";
  }
  if (total.count() > 0) {
    text += "\nabout " + length_text(total) +
            " for one worker (estimate); the longest comparison " + length_text(longest);
  }
  print(text + "\nplan " + plan.id.substr(0, 12) + " in " + plan_file_in(flags.folder) + "\n");
  if (!limit) return;
  std::vector<std::string> lines;
  for (const PlannedComparison& comparison : plan.comparisons) {
    const auto& predicted = comparison.predicted;
    if (!predicted.most_peak || *predicted.most_peak <= *limit) continue;
    const bool none_fits = *predicted.least_peak > *limit;
    lines.push_back(
        comparison_words(comparison) +
        (none_fits ? ": no variant fits; the smallest needs " + format_bytes(*predicted.least_peak)
                   : ": some variants do not fit; the largest needs " +
                         format_bytes(*predicted.most_peak)));
  }
  print(std::to_string(lines.size()) + " comparisons do not fit into " + format_bytes(*limit) +
        " completely\n");
  for (std::size_t index = 0; index < std::min(lines.size(), kMaxLines); ++index) {
    print("  " + lines[index] + "\n");
  }
  if (lines.size() > kMaxLines) {
    print("  and " + std::to_string(lines.size() - kMaxLines) + " more; see --json\n");
  }
}

ExitCode make_plan(const SweepPlanFlags& flags) {
  const std::optional<Bytes> limit = memory_of_tensors(flags);
  SweepFile sweep = require_json_file(flags.file, sweep_from_json);
  ComparisonPlan plan;
  plan.tool_version = REMATCH_VERSION;
  // Checks the arguments of only one comparison. The arguments in which comparisons differ are
  // generated, so they need no check.
  plan.device = require_request(flags.file, sweep.comparisons.front()).device;
  plan.stale_after = parse_duration(flags.stale_after);
  plan.comparisons = sweep.comparisons;
  predict(flags, plan);
  plan.id = comparison_plan_id(plan);
  plan.id = write_plan(flags.folder, plan);
  if (!has_libtorch()) {
    say("note: this build has no LibTorch, so the plan has no predicted peaks or times; workers "
        "take comparisons in the file's order, and skip none");
  }
  if (flags.json) {
    print_json(plan_to_json(plan));
  } else {
    print_plan(flags, sweep, plan, limit);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_sweep_plan(CLI::App& sweep, Action& action) {
  add_command<SweepPlanFlags>(
      sweep, action, "plan", "Expands a sweep file into a folder of comparisons for the workers",
      make_plan,
      "Examples:\n"
      "  rematch sweep plan sweep.json results/wan\n"
      "  rematch sweep plan sweep.json results/wan --card l40s --memory 48GiB\n"
      "The same file and version of this tool make the same plan, byte for byte.");
}

}  // namespace rematch
