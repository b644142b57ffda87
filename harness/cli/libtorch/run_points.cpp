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
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/rank_commands.h"
#include "harness/cli/libtorch/run_setup.h"
#include "harness/measure/cuda_device.h"
#include "harness/measure/gpu_monitor.h"
#include "harness/measure/memory.h"
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
    "8";  // as many GPUs as a node has, which is enough for each rank of --parallel
const std::vector<std::string_view> kCards = {"h100", "h200", "l40s", "a100"};

// The path of the dry device's program. The build puts that program next to this one.
fs::path dry_program() { return fs::path(own_executable()).parent_path() / "dry" / "rematch"; }

void require_card(const std::string& card) {
  if (std::find(kCards.begin(), kCards.end(), card) != kCards.end()) return;
  throw UsageError("unknown card " + in_quotes(card) + did_you_mean(card, kCards));
}

// Handles --device cuda-dry: replaces this process with the program that is linked to the dry CUDA
// device. Returns only if this program is already linked to that device. An empty `card` means
// h100. Throws UsageError for an unknown card, or if the build has no dry device.
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

// The default is all points, even in a job array, because a script may run several complete
// commands in one task.
Shard shard_of(const RunFlags& flags) {
  if (flags.shard != kSlurmShard) return require(parse_shard(flags.shard));
  return require(shard_of_slurm([](const char* name) { return std::getenv(name); }));
}

// Replaces `slurm` by this task's share, because the command may be rerun where Slurm's variables
// are different or missing.
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

Provenance provenance_of(const RunFlags& flags, const std::string& allocator) {
  Provenance provenance = make_provenance(flags.command, flags.device, allocator,
                                          static_cast<std::uint64_t>(flags.seed));
  provenance.reproduce = shell_line(with_shard(flags.command, shard_of(flags)));
  return provenance;
}

// Returns the policies of the flags, preceded by the reference if it is not among them. Modes
// without an equivalent policy are added to `refused`.
std::vector<Policy> policies_of(const RunFlags& flags, std::vector<RefusedPolicy>& refused) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to run: give --policy none,full,... or --plan FILE");
  }
  std::vector<Policy> policies;
  if (!flags.policies.empty()) policies = require(parse_policies(flags.policies, refused));
  const Policy reference = require(parse_policy(flags.reference));
  const bool there = std::any_of(policies.begin(), policies.end(), [&](const Policy& policy) {
    return policy.name == reference.name;
  });
  if (policies.empty() && !refused.empty()) throw UsageError(refused.front().reason);
  if (!there) policies.insert(policies.begin(), reference);
  return policies;
}

// A snapshot shows one point: the last one, because the reference runs first.
void check_snapshot(const RunFlags& flags, const VariantSettings& variants) {
  if (flags.snapshot.empty()) return;
  if (device_named(variants.device).type() != c10::DeviceType::CUDA) {
    throw UsageError("--snapshot needs a CUDA device; device is " + variants.device +
                     "; leave it out, or use --device cuda");
  }
  const std::size_t num_policies =
      flags.policies.empty() ? 0 : require(parse_policies(flags.policies)).size();
  if (num_policies + flags.plan_files.size() != 1 || variants.schedules.size() > 1 ||
      variants.shard.count != 1) {
    throw UsageError(
        "--snapshot records one point: give one policy or plan, one schedule and no "
        "--shard");
  }
}

// Rejects flags that require a part of the run that --times-only or --in-process leaves out.
void check_timing(const RunFlags& flags, const ComparisonSettings& settings) {
  const VariantSettings& variants = settings.variants;
  if (flags.in_process && !variants.pretended_rank && world_size(variants.model) > 1) {
    throw UsageError(
        "--in-process times the points of one rank; leave it out, or measure one rank with "
        "--pretend-rank");
  }
  if (!flags.times_only) return;
  if (settings.rounds.most == 0) {
    throw UsageError("--times-only measures nothing with --rounds 0; give 1 or more rounds");
  }
  if (flags.num_repeats > 0 || !flags.snapshot.empty()) {
    throw UsageError(
        "--repeat-reference and --snapshot need the exact pass, which --times-only skips; leave "
        "one of them out");
  }
  if (!names_cuda(variants.device) && !computes_values(variants.device)) {
    throw UsageError("--times-only needs a device that has times; device is " + variants.device +
                     ", allowed are cpu and cuda");
  }
}

std::optional<int> pretended_rank_of(const RunFlags& flags, int world) {
  if (!flags.pretend_rank) return std::nullopt;
  if (world == 1) {
    throw UsageError("--pretend-rank requires a layout, such as --parallel tp=2");
  }
  if (*flags.pretend_rank >= world) {
    throw UsageError("--pretend-rank " + std::to_string(*flags.pretend_rank) +
                     ": the layout has the ranks 0 to " + std::to_string(world - 1));
  }
  return flags.pretend_rank;
}

// Uses --threads, or else LibTorch's default divided by the number of ranks on this machine.
void choose_threads(const RunFlags& flags, const std::optional<RankPlace>& place,
                    VariantSettings& variants) {
  const int world = static_cast<int>(world_size(variants.model));
  int processes = variants.pretended_rank ? 1 : world;
  if (place) processes = place->ranks_sharing_cpus.value_or(world);
  at::set_num_threads(flags.num_threads > 0 ? flags.num_threads
                                            : std::max(1, at::get_num_threads() / processes));
  variants.threads = at::get_num_threads();
}

}  // namespace

ComparisonSettings settings_of(const RunFlags& flags, std::vector<RefusedPolicy>& refused) {
  ComparisonSettings settings;
  VariantSettings& variants = settings.variants;
  run_on(flags.device, flags.allocator, variants);
  variants.plans = require_given_plans(flags.plan_files);
  variants.model = model_for(flags.model, first_of(variants.plans));
  choose_kernels(flags, variants);
  variants.policies = policies_of(flags, refused);
  variants.schedules = parse_schedules(flags.schedule);
  variants.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  variants.optimizer = parse_optimizer(flags.optimizer);
  variants.data_file = flags.data_file;
  if (!flags.data_file.empty() && !trains_on_text(variants.model.family)) {
    throw UsageError("--data is the text that a language model trains on; " +
                     variants.model.preset + " makes its own latents, so leave it out");
  }
  variants.pretended_rank = pretended_rank_of(flags, static_cast<int>(world_size(variants.model)));
  settings.reference = require(parse_policy(flags.reference)).name;
  settings.num_repeats = flags.num_repeats;
  variants.reference = settings.reference;
  variants.shard = shard_of(flags);
  measure_by(flags, settings);
  settings.times_only = flags.times_only;
  check_snapshot(flags, variants);
  check_timing(flags, settings);
  settings.snapshot_file = flags.snapshot;
  return settings;
}

namespace {

// On the CPU, points that cannot fit are skipped. On CUDA the allocator rejects them, and no other
// process suffers. Throws UsageError if no point fits. A shard skips its points instead, so that a
// merged report includes them.
std::optional<AvailableMemory> limit_for(const RunFlags& flags, const ComparisonSettings& settings,
                                         const std::vector<Variant>& variants) {
  if (flags.force) return std::nullopt;
  const std::optional<AvailableMemory> limit = available_memory_of(settings.variants.device);
  const std::string why = why_none_fits(variants, limit);
  if (!why.empty() && settings.variants.shard.count == 1) {
    throw UsageError((variants.size() > 1 ? "no point fits; the smallest, " : "") + why +
                     "; choose a smaller model or another policy, or run it anyway with "
                     "--force");
  }
  if (settings.variants.device != "cpu") return std::nullopt;
  return limit;
}

std::vector<PlannedPoint> planned_points(const VariantSettings& settings,
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
std::vector<std::string> snapshot_files(const RunFlags& flags, const VariantSettings& variants) {
  if (flags.snapshot.empty()) return {};
  const int world =
      variants.pretended_rank ? 1 : static_cast<int>(world_size(variants.model.dimensions));
  std::vector<std::string> files;
  for (int rank = 0; rank < world; ++rank) {
    files.push_back(file_of_rank(flags.snapshot, rank, world));
  }
  return files;
}

// Checks and locks the report that this process will write, and checks its other files. The
// processes of other ranks write no files.
std::unique_ptr<OutputFile> require_outputs(const RunFlags& flags, ComparisonSettings& settings) {
  const VariantSettings& variants = settings.variants;
  for (const std::string& file : snapshot_files(flags, variants)) {
    const OutputFile checked({file, flags.overwrite, {file_kind::kSnapshot}});
  }
  std::vector<std::string> inputs = policy_files(flags.policies);
  inputs.insert(inputs.end(), flags.plan_files.begin(), flags.plan_files.end());
  inputs.push_back(flags.data_file);
  OutputRequest request = flags.request({file_kind::kReport}, std::move(inputs));
  request.file = file_of_shard(flags.output, variants.shard);
  auto output = std::make_unique<OutputFile>(request);
  output->require_model(variants.model.preset);
  if (!flags.output.empty()) settings.points_folder = points_folder_of(flags.output);
  return output;
}

// Adds policies that the model cannot have as refused points, so that one such policy does not
// abort a long run.
void add_refused(const VariantSettings& settings, const std::vector<RefusedPolicy>& refused,
                 Report& report) {
  for (const RefusedPolicy& policy : refused) {
    PointRecord& point = report.points.emplace_back();
    point.policy = policy.name;
    point.identity = refused_identity(settings, policy.name);
    point.device = device_kind(settings.device);
    point.status = PointStatus::kRefused;
    point.reason = policy.reason;
  }
}

// Returns a text such as "this run takes up to 40 s on an idle machine (estimate)". Returns "" for
// work of a few seconds, and if rates are unknown: on a GPU, or with several ranks on one machine.
std::string length_words(const RunFlags& flags, const ComparisonSettings& settings,
                         const std::vector<Variant>& variants, const Trace& trace) {
  constexpr std::chrono::seconds kShort(3);
  const bool is_one_process =
      settings.variants.pretended_rank || world_size(settings.variants.model) == 1;
  if (settings.variants.device != "cpu" || !is_one_process) return "";
  RunWords run;
  run.num_steps = settings.num_steps;
  run.num_rounds = settings.rounds.most;
  run.has_optimizer = flags.optimizer != "none";
  run.exact_passes = !settings.times_only;
  std::vector<MeasuredPlan> plans;
  for (const Variant& variant : variants) {
    if (variant.of_this_shard) plans.push_back({&variant.plan, variant.identity.schedule});
  }
  const auto time = predict_run_time(plans, settings.num_repeats, trace, run);
  if (time < kShort) return "";
  return "this run takes up to " + length_text(time) + " on an idle machine (estimate)";
}

ExitCode compare_variants(const RunFlags& flags, ComparisonSettings settings,
                          std::vector<RefusedPolicy> refused) {
  const auto locked = require_outputs(flags, settings);
  use_allocator(settings.variants.allocator);
  std::vector<Variant> variants;
  std::string length;
  try {
    const TracedModel model = trace_of_model(settings.variants);
    variants = require(make_variants(settings.variants, model, &refused));
    length = length_words(flags, settings, variants, model.trace);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());  // make_variants() cannot use the data
  }
  print_warnings(warnings_of(variants));
  const std::vector<PlannedPoint> planned = planned_points(settings.variants, variants, refused);
  std::erase_if(variants, [](const Variant& variant) { return !variant.of_this_shard; });
  settings.limit = limit_for(flags, settings, variants);
  settings.how_to_lift_limit = "--force measures it anyway";
  const Provenance provenance = provenance_of(flags, settings.variants.allocator);
  if (const auto warning = shared_gpu_warning(provenance.environment)) say(*warning);
  if (names_cuda(settings.variants.device)) {
    say("predicted peaks: " + std::string(kTemporariesNotMeasured));
  }
  if (!length.empty()) say(length);
  const std::string output = file_of_shard(flags.output, settings.variants.shard);
  Report report;
  try {
    report = run_comparison(settings, variants, provenance);
  } catch (InterruptedComparison& interrupted) {
    interrupted.partial.planned = planned;
    throw Interrupted(interrupted.signal,
                      interrupted.what_remains + keep_partial(output, interrupted.partial));
  }
  add_refused(settings.variants, refused, report);
  // The report lists the points of all shards, if there are several shards.
  if (settings.variants.shard.count > 1) report.planned = planned;
  show(
      output, flags.json, [&] { return report_to_json(report); },
      [&] {
        const bool is_dry =
            !computes_values(settings.variants.device) && names_cuda(settings.variants.device);
        return render_table(report, TableFormat::kText, terminal_columns()) +
               (is_dry ? render_launches(report, terminal_columns()) : "");
      });
  if (!output.empty()) std::fprintf(stderr, "report: %s\n", output.c_str());
  for (const std::string& file : snapshot_files(flags, settings.variants)) {
    std::fprintf(stderr, "snapshot: %s\n", file.c_str());
  }
  return exit_code_of(report);
}

}  // namespace

ExitCode run_points(const RunFlags& flags) {
  require_dry_for_card(flags.device, flags.card);
  if (flags.device == "cuda-dry") continue_on_dry_device(flags.command, flags.card);
  prepare_children();
  std::vector<RefusedPolicy> refused;
  ComparisonSettings settings = settings_of(flags, refused);
  const VariantSettings& variants = settings.variants;
  const std::optional<RankPlace> place =
      variants.pretended_rank ? std::nullopt
                              : place_among_commands(static_cast<int>(world_size(variants.model)));
  choose_threads(flags, place, settings.variants);
  return work_on_ranks(place, [&](RankProcesses* ranks) {
    settings.children.ranks = ranks;
    return compare_variants(flags, settings, refused);
  });
}

}  // namespace rematch
