#include "harness/cli/libtorch/run_points.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/files/output_file.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/rank_commands.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_monitor.h"
#include "harness/process/process.h"
#include "harness/ranks/place.h"
#include "harness/run/children/child_point.h"
#include "harness/run/comparison.h"
#include "harness/run/shard.h"
#include "harness/sweep/job_script.h"
#include "harness/sweep/predict_comparison.h"
#include "harness/training/device.h"
#include "models/preset/parallel.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/trace/profile.h"
#include "reports/record/json/record_json.h"
#include "reports/render/tables/launches.h"
#include "reports/render/tables/report_table.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCardVariable = "DRY_CUDA_CARD";
constexpr const char* kNumCardsVariable = "DRY_CUDA_DEVICES";
constexpr const char* kCardsOfNode =
    "8";  // as many GPUs as a node usually has; each rank of --parallel uses one
const std::vector<std::string_view> kCards = {"h100", "h200", "l40s", "a100"};

// The path of the dry device's program. The build puts that program next to this one.
fs::path dry_program() { return fs::path(own_executable()).parent_path() / "dry" / "rematch"; }

void require_card(const std::string& card) {
  if (std::find(kCards.begin(), kCards.end(), card) != kCards.end()) return;
  throw UsageError("unknown card " + in_quotes(card) + did_you_mean(card, kCards));
}

// Replaces this process with the program that is linked to the dry CUDA device. Returns only if
// this is already that program. An empty `card` means h100. Throws UsageError for an unknown card,
// or if the build has no dry device.
void continue_on_dry_device(const std::vector<std::string>& command, const std::string& card) {
  if (!card.empty()) require_card(card);
  if (on_dry_device()) return;
  const std::string program = dry_program().string();
  if (!fs::exists(program)) {
    throw UsageError(
        "device 'cuda-dry' cannot be used: this build has no dry device; run scripts/setup dry and "
        "build preset dev again");
  }
  if (!card.empty()) setenv(kCardVariable, card.c_str(), /*overwrite=*/1);
  setenv(kNumCardsVariable, kCardsOfNode, /*overwrite=*/0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw UsageError("device 'cuda-dry' cannot be used: " + program + " does not start");
}

void require_dry_for_card(const std::string& device, const std::string& card) {
  if (card.empty() || device == "cuda-dry") return;
  throw UsageError("--card requires device cuda-dry; leave it out with device " + device);
}

// Replaces the value `slurm` of --shard by this task's share, so that the recorded command can be
// rerun outside this Slurm task.
std::vector<std::string> with_shard(std::vector<std::string> command, const Shard& shard) {
  const std::string share = std::to_string(shard.index) + "/" + std::to_string(shard.count);
  for (std::size_t word = 0; word < command.size(); ++word) {
    if (command[word] == std::string("--shard=") + kSlurmShard) command[word] = "--shard=" + share;
    if (word > 0 && command[word - 1] == "--shard" && command[word] == kSlurmShard) {
      command[word] = share;
    }
  }
  return command;
}

Provenance provenance_of(const RunFlags& flags, const RunSettings& settings) {
  Provenance provenance = make_provenance(flags.command, settings.request.device,
                                          settings.allocator, settings.request.seed);
  provenance.reproduce = shell_line(with_shard(flags.command, settings.request.shard));
  return provenance;
}

// Rejects --times-only on a device whose times are meaningless.
void require_times(const RunRequest& request) {
  if (!request.times_only || names_cuda(request.device) || computes_values(request.device)) return;
  throw UsageError("--times-only needs a device that can measure times; device is " +
                   request.device + ", allowed: cpu and cuda");
}

// Uses --threads, or else LibTorch's default number of threads divided by the number of ranks on
// this machine.
void choose_threads(const std::optional<RankPlace>& place, RunSettings& settings) {
  const RunRequest& request = settings.request;
  const int world = static_cast<int>(world_size(request.model));
  int processes = request.pretended_rank ? 1 : world;
  if (place) processes = place->ranks_sharing_cpus.value_or(world);
  at::set_num_threads(request.num_threads > 0 ? request.num_threads
                                              : std::max(1, at::get_num_threads() / processes));
  settings.threads = at::get_num_threads();
}

// Returns the available memory. Points that need more are skipped. Absent on CUDA, whose allocator
// rejects such points itself, and with --force. Throws UsageError if no point fits. A shard does
// not throw, because the merged report must contain its skipped points.
std::optional<AvailableMemory> limit_for(const RunRequest& request,
                                         const std::vector<Variant>& variants) {
  if (request.force) return std::nullopt;
  const std::optional<AvailableMemory> limit = available_memory_of(request.device);
  const std::string why = why_none_fits(variants, limit);
  if (!why.empty() && request.shard.count == 1) {
    throw UsageError((variants.size() > 1 ? "no point fits; the smallest, " : "") + why +
                     "; choose a smaller model or another policy, or run it anyway with "
                     "--force");
  }
  if (request.device != "cpu") return std::nullopt;
  return limit;
}

std::vector<PlannedPoint> planned_points(const RunSettings& settings,
                                         const std::vector<Variant>& variants,
                                         const std::vector<RefusedPolicy>& refused) {
  std::vector<PlannedPoint> planned;
  for (const Variant& variant : variants) {
    planned.push_back({variant.policy, variant.identity.schedule, point_key(variant.identity)});
  }
  for (const RefusedPolicy& policy : refused) {
    const PointIdentity identity = refused_identity(settings, policy.name);
    planned.push_back({policy.name, identity.schedule, point_key(identity)});
  }
  return planned;
}

// Returns the snapshot file of each rank that measures. Returns an empty list without --snapshot.
std::vector<std::string> snapshot_files(const RunRequest& request) {
  if (request.snapshot_file.empty()) return {};
  const int world = request.pretended_rank ? 1 : static_cast<int>(world_size(request.model));
  std::vector<std::string> files;
  for (int rank = 0; rank < world; ++rank) {
    files.push_back(file_of_rank(request.snapshot_file, rank, world));
  }
  return files;
}

// Checks all files that this process will write, and locks its report. The processes of other ranks
// write no files.
std::unique_ptr<OutputFile> require_outputs(const RunFlags& flags, const RunRequest& request) {
  for (const std::string& file : snapshot_files(request)) {
    const OutputFile checked({file, flags.overwrite, {file_kind::kSnapshot}});
  }
  std::vector<std::string> inputs = policy_files(flags.policies);
  inputs.insert(inputs.end(), flags.plan_files.begin(), flags.plan_files.end());
  inputs.push_back(request.data_file);
  OutputRequest report = flags.request({file_kind::kReport}, std::move(inputs));
  report.file = file_of_shard(flags.output, request.shard);
  auto output = std::make_unique<OutputFile>(report);
  output->require_model(request.model.preset);
  return output;
}

// Adds a refused point for each policy that does not apply to the model, so that one such policy
// does not abort a long run.
void add_refused(const RunSettings& settings, const std::vector<RefusedPolicy>& refused,
                 Report& report) {
  for (const RefusedPolicy& policy : refused) {
    PointRecord& point = report.points.emplace_back();
    point.policy = policy.name;
    point.identity = refused_identity(settings, policy.name);
    point.device = device_kind(settings.request.device);
    point.status = PointStatus::kRefused;
    point.reason = policy.reason;
  }
}

// Returns a text such as "this run takes up to 40 s on an idle machine (estimate)". Returns "" for
// short runs, and for runs on a GPU or on several ranks, whose rates are unknown.
std::string length_words(const RunRequest& request, const std::vector<Variant>& variants,
                         const Trace& trace) {
  constexpr std::chrono::seconds kShort(3);
  const bool is_one_process = request.pretended_rank || world_size(request.model) == 1;
  if (request.device != "cpu" || !is_one_process) return "";
  std::vector<MeasuredPlan> plans;
  for (const Variant& variant : variants) {
    if (variant.of_this_shard) plans.push_back({&variant.plan, variant.identity.schedule});
  }
  const auto time = predict_run_time(plans, request, {&trace}, /*sheet=*/nullptr);
  if (time < kShort) return "";
  return "this run takes up to " + length_text(time) + " on an idle machine (estimate)";
}

ExitCode compare_variants(const RunFlags& flags, RunSettings settings) {
  const RunRequest& request = settings.request;
  const auto locked = require_outputs(flags, request);
  use_allocator(settings.allocator);
  std::vector<RefusedPolicy> refused = request.refused;
  std::vector<Variant> variants;
  std::string length;
  try {
    const TracedModel model = trace_of_model(settings);
    variants = require(make_variants(settings, model, &refused));
    length = length_words(request, variants, model.trace);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());  // the request's data is unusable
  }
  print_warnings(warnings_of(variants));
  const std::vector<PlannedPoint> planned = planned_points(settings, variants, refused);
  std::erase_if(variants, [](const Variant& variant) { return !variant.of_this_shard; });
  settings.limit = limit_for(request, variants);
  settings.how_to_lift_limit = "--force measures it anyway";
  const Provenance provenance = provenance_of(flags, settings);
  if (const auto warning = shared_gpu_warning(provenance.environment)) say(*warning);
  if (names_cuda(request.device)) {
    say("predicted peaks: " + std::string(kTemporariesNotMeasured));
  }
  if (!length.empty()) say(length);
  const std::string output = file_of_shard(flags.output, request.shard);
  Report report;
  try {
    report = run_comparison(settings, variants, provenance);
  } catch (InterruptedComparison& interrupted) {
    interrupted.partial.planned = planned;
    throw Interrupted(interrupted.signal,
                      interrupted.what_remains + keep_partial(output, interrupted.partial));
  }
  add_refused(settings, refused, report);
  // A shard's report lists the points of all shards, so that a merge finds missing points.
  if (request.shard.count > 1) report.planned = planned;
  show(
      output, flags.json, [&] { return report_to_json(report); },
      [&] {
        const bool is_dry = !computes_values(request.device) && names_cuda(request.device);
        return render_table(report, TableFormat::kText, terminal_columns()) +
               (is_dry ? render_launches(report, terminal_columns()) : "");
      });
  if (!output.empty()) std::fprintf(stderr, "report: %s\n", output.c_str());
  for (const std::string& file : snapshot_files(request)) {
    std::fprintf(stderr, "snapshot: %s\n", file.c_str());
  }
  return exit_code_of(report);
}

}  // namespace

ExitCode run_points(const RunFlags& flags) {
  require_dry_for_card(flags.device, flags.card);
  if (flags.device == "cuda-dry") continue_on_dry_device(flags.command, flags.card);
  prepare_children();
  RunSettings settings = require(settings_here(request_of(flags)));
  const RunRequest& request = settings.request;
  if (!flags.model.model().empty()) flags.model.say_grid(request.model);
  require_times(request);
  settings.points_folder = points_folder_of(flags.output);
  const std::optional<RankPlace> place =
      request.pretended_rank ? std::nullopt
                             : place_among_commands(static_cast<int>(world_size(request.model)));
  choose_threads(place, settings);
  return work_on_ranks(place, [&](RankProcesses* ranks) {
    settings.children.ranks = ranks;
    return compare_variants(flags, settings);
  });
}

}  // namespace rematch
