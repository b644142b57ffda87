#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "harness/cli/commands.h"
#include "harness/cli/flag_values.h"
#include "harness/cli/model_flags.h"
#include "harness/cli/no_libtorch.h"
#include "harness/cli/output.h"
#include "harness/cli/plan_files.h"
#include "harness/cli/require.h"
#include "models/preset/parallel.h"
#include "policies/catalogue/catalogue.h"
#include "reports/record/record_json.h"
#include "reports/render/tables/launches.h"
#include "reports/render/tables/report_table.h"
#ifdef REMATCH_LIBTORCH
#include <ATen/Parallel.h>

#include "harness/cli/dry_device.h"
#include "harness/cli/partial_report.h"
#include "harness/cli/run_setup.h"
#include "harness/measure/gpu_monitor.h"
#include "harness/measure/memory.h"
#include "harness/ranks/place.h"
#include "harness/run/comparison.h"
#include "harness/run/device.h"
#include "harness/sweep/shard.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "policies/trace/profile.h"
#endif

namespace rematch {
namespace {

constexpr int kMostSteps = 1'000'000;
constexpr int kMostRepeats = 1000;
constexpr int kUsualRepeats = 4;
constexpr int kMostThreads = 4096;
constexpr const char* kSlurm = "slurm";

struct Flags {
  explicit Flags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--policy", policies,
                   "Policies to compare, separated by commas; see rematch list");
    app.add_option(
        "--plan", plan_files,
        "Plan files, or points of a front such as front.json#3; instead of --policy or beside it");
    app.add_option("--schedule", schedule, "whole_region, on_demand or both");
    app.add_option(
        "--device", device,
        "cpu, meta, cuda, cuda:1, or cuda-dry: kernel launches and memory of CUDA without a GPU");
    app.add_option("--card", card,
                   "Card that cuda-dry stands for: h100, h200, l40s or a100 (default: h100)");
    app.add_option("--attention", attention,
                   "Attention backend: flash, cudnn, efficient or math (default: the first that "
                   "device and dtype have; for times on CUDA, LibTorch's choice)");
    app.add_option("--allocator", allocator,
                   "Allocator of CUDA: caching, or expandable (segments) (default: as "
                   "PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF says)");
    app.add_option("--steps", num_steps, "Number of steps of every pass and round")
        ->check(CLI::Range(1, kMostSteps));
    app.add_option("--rounds", rounds,
                   "Number of rounds of timed steps, with a child process for each point in each: "
                   "N, or MIN:MAX, which ends when --precision is reached; 0: no times");
    app.add_option("--precision", precision,
                   "Half width of a ratio's interval at which rounds end");
    app.add_option("--optimizer", optimizer,
                   "adamw, adamw(learning_rate=3e-4), or none for forward and backward alone");
    app.add_option("--data", data_file,
                   "Text file to train on (default: the text that ships with rematch)");
    app.add_option("--seed", seed, "Seed of data and random number generators")
        ->check(CLI::Range(0, kMostSteps));
    app.add_option("--threads", num_threads,
                   "Thread count of LibTorch (default: LibTorch's choice, shared among ranks)")
        ->default_str("")
        ->check(CLI::Range(1, kMostThreads));
    app.add_option("--pretend-rank", pretend_rank,
                   "Measure this rank of --parallel's layout alone, in one process: collectives "
                   "fill their results locally, so counts and bytes are right and values are not")
        ->check(CLI::Range(0, static_cast<int>(kMaxWorld) - 1));
    app.add_option("--reference", reference, "Policy that the others are compared with");
    app.add_option("--repeat-reference", num_repeats,
                   "Number of further runs of the reference, 4 if no number is given; rematch gate "
                   "takes the noise from them (default: 0)")
        ->expected(0, 1)
        ->default_str(std::to_string(kUsualRepeats))
        ->check(CLI::Range(0, kMostRepeats));
    app.add_option("--timeout", timeout, "Time limit of one child process: 90s, 10min");
    app.add_option("--retries", num_retries,
                   "Number of restarts of a child process that timed out, or was killed while "
                   "memory was free")
        ->check(CLI::Range(0, kMostRepeats));
    app.add_option("--shard", shard,
                   "Run only a share of the points, counted from 0: 2/8; or slurm: the share of "
                   "this task of a Slurm job array");
    app.add_flag("--deterministic-times", deterministic_times,
                 "Time deterministic kernels on CUDA instead of the fastest");
    app.add_flag("--allow-no-effect", allow_no_effect, "Accept plans that change nothing");
    app.add_flag("--force", force,
                 "Run points although their predicted memory exceeds the machine's");
    app.add_flag("--fresh", fresh, "Measure again the points that an interrupted run has finished");
    app.add_option("--snapshot", snapshot,
                   "File for the CUDA allocator's snapshot over one step of one policy, for "
                   "pytorch.org/memory_viz");
    app.add_option(
        "-o,--output", output,
        "Report to write; points are stored in a folder beside it, and a rerun resumes from them");
    app.add_flag("--json", json, "Print the report instead of the table");
  }
  ModelFlags model;
  std::string policies;
  std::vector<std::string> plan_files;
  std::string schedule = "on_demand";
  std::string device = "cpu";
  std::string card;
  std::string attention;
  std::string allocator;
  int num_steps = 10;
  std::string rounds = "4:8";
  std::string precision = "2%";
  std::string optimizer = "adamw";
  std::string data_file;
  std::int64_t seed = 0;
  int num_threads = 0;
  std::optional<int> pretend_rank;
  std::string reference = "none";
  int num_repeats = 0;
  std::string timeout = "10min";
  int num_retries = 1;
  std::string shard = "0/1";
  bool deterministic_times = false;
  bool allow_no_effect = false;
  bool force = false;
  bool fresh = false;
  std::string snapshot;
  std::string output;
  bool json = false;
};

#ifdef REMATCH_LIBTORCH

// All of the points unless a share is asked for: a script that runs several commands in one task
// of a job array means each of them whole.
Shard shard_of(const Flags& flags) {
  if (flags.shard != kSlurm) return require(parse_shard(flags.shard));
  return require(shard_of_slurm([](const char* name) { return std::getenv(name); }));
}

// The command with the share that it came to: elsewhere the variables say another, or none.
std::vector<std::string> with_shard(std::vector<std::string> command, const Shard& shard) {
  const std::string share = std::to_string(shard.index) + "/" + std::to_string(shard.count);
  for (std::size_t word = 0; word < command.size(); ++word) {
    if (command[word] == std::string("--shard=") + kSlurm) command[word] = "--shard=" + share;
    if (word > 0 && command[word - 1] == "--shard" && command[word] == kSlurm) {
      command[word] = share;
    }
  }
  return command;
}

Provenance provenance_of(const Flags& flags, const std::vector<std::string>& command,
                         const std::string& allocator) {
  Provenance provenance =
      make_provenance(command, flags.device, allocator, static_cast<std::uint64_t>(flags.seed));
  provenance.reproduce = shell_line(with_shard(command, shard_of(flags)));
  return provenance;
}

// The policies asked for; the reference in front if it is not among them.
std::vector<Policy> policies_of(const Flags& flags) {
  if (flags.policies.empty() && flags.plan_files.empty()) {
    throw UsageError("nothing to run: give --policy none,full,... or --plan FILE");
  }
  std::vector<Policy> policies;
  if (!flags.policies.empty()) policies = require(parse_policies(flags.policies));
  const Policy reference = require(parse_policy(flags.reference));
  const bool there = std::any_of(policies.begin(), policies.end(), [&](const Policy& policy) {
    return policy.name == reference.name;
  });
  if (!there) policies.insert(policies.begin(), reference);
  return policies;
}

// The one point that the file is for is the last, behind the reference.
void check_snapshot(const Flags& flags, const VariantSettings& variants) {
  if (flags.snapshot.empty()) return;
  if (device_named(variants.device).type() != c10::DeviceType::CUDA) {
    throw UsageError("--snapshot is of CUDA's allocator, which device " + variants.device +
                     " does not have; leave it out, or use --device cuda");
  }
  const std::size_t num_policies =
      flags.policies.empty() ? 0 : require(parse_policies(flags.policies)).size();
  if (num_policies + flags.plan_files.size() != 1 || variants.schedules.size() != 1 ||
      variants.shard.count != 1) {
    throw UsageError(
        "--snapshot is of one point: give it one policy or plan, one schedule and no "
        "--shard");
  }
  require_writable(flags.snapshot);
}

// torchrun and srun start this command once for each rank, and each would start all of them.
void refuse_ranks_from_outside(int world) {
  const auto place = rank_place_from_environment();
  if (world == 1 || !place || place->world == 1) return;
  throw UsageError("this is rank " + std::to_string(place->rank) + " of " +
                   std::to_string(place->world) +
                   " by its environment (RANK, WORLD_SIZE), and run starts the ranks of --parallel "
                   "itself, on one machine; start it once, without torchrun or srun");
}

std::optional<int> pretended_rank_of(const Flags& flags, int world) {
  if (!flags.pretend_rank) return std::nullopt;
  if (world == 1) {
    throw UsageError("--pretend-rank is a rank of a layout; say which with --parallel tp=2 or so");
  }
  if (*flags.pretend_rank >= world) {
    throw UsageError("--pretend-rank " + std::to_string(*flags.pretend_rank) +
                     ": the layout has the ranks 0 to " + std::to_string(world - 1));
  }
  return flags.pretend_rank;
}

ComparisonSettings settings_of(const Flags& flags) {
  ComparisonSettings settings;
  VariantSettings& variants = settings.variants;
  variants.device = require(usable_device(flags.device));
  variants.allocator =
      require(allocator_of(variants.device, flags.allocator, allocator_configuration()));
  for (const std::string& file : flags.plan_files) {
    variants.plans.push_back(require_plan(file));
  }
  variants.model = model_for(flags.model, variants.plans);
  variants.attention =
      require(usable_attention(flags.attention, variants.device, variants.model.dtype));
  variants.libtorch_chooses_attention =
      flags.attention.empty() && device_named(variants.device).is_cuda();
  variants.policies = policies_of(flags);
  variants.schedules = parse_schedules(flags.schedule);
  variants.no_effect = flags.allow_no_effect ? NoEffect::kAllow : NoEffect::kReject;
  variants.optimizer = parse_optimizer(flags.optimizer);
  variants.data_file = flags.data_file;
  if (!flags.data_file.empty() && !trains_on_text(variants.model.family)) {
    throw UsageError("--data is the text that a language model trains on; " +
                     variants.model.preset + " makes its own latents, so leave it out");
  }
  if (names_cuda(variants.device)) variants.round = kCudaRounding;
  if (flags.deterministic_times) variants.timed_as = Determinism::kRepeatableBits;
  variants.seed = static_cast<std::uint64_t>(flags.seed);
  const int world = static_cast<int>(world_size(variants.model));
  variants.pretended_rank = pretended_rank_of(flags, world);
  if (!variants.pretended_rank) refuse_ranks_from_outside(world);
  const int processes = variants.pretended_rank ? 1 : world;
  at::set_num_threads(flags.num_threads > 0 ? flags.num_threads
                                            : std::max(1, at::get_num_threads() / processes));
  variants.threads = at::get_num_threads();
  settings.reference = require(parse_policy(flags.reference)).name;
  settings.num_repeats = flags.num_repeats;
  variants.reference = settings.reference;
  variants.shard = shard_of(flags);
  settings.num_steps = flags.num_steps;
  settings.rounds = parse_rounds(flags.rounds, flags.precision);
  settings.children = {parse_duration(flags.timeout), flags.num_retries};
  settings.fresh = flags.fresh;
  check_snapshot(flags, variants);
  settings.snapshot_file = flags.snapshot;
  if (!flags.output.empty()) {
    require_writable(flags.output);
    settings.points_folder = points_folder_of(flags.output);
  }
  return settings;
}

// Points that cannot fit are skipped on the CPU; CUDA's allocator refuses on its own, and nothing
// else suffers. Throws UsageError where none fits; a share's are skipped all the same, so that a
// merged report has them.
std::optional<AvailableMemory> limit_for(const Flags& flags, const ComparisonSettings& settings,
                                         const std::vector<Variant>& variants) {
  if (flags.force) return std::nullopt;
  const std::optional<AvailableMemory> limit = available_memory_of(settings.variants.device);
  const std::string why = why_none_fits(variants, limit);
  if (!why.empty() && settings.variants.shard.count == 1) {
    throw UsageError((variants.size() > 1 ? "no point fits; the smallest, " : "") + why +
                     "; take a smaller model or another policy, or start it all the same with "
                     "--force");
  }
  if (settings.variants.device != "cpu") return std::nullopt;
  return limit;
}

std::vector<PlannedPoint> planned_points(const std::vector<Variant>& variants) {
  std::vector<PlannedPoint> planned;
  for (const Variant& variant : variants) {
    planned.push_back({variant.policy, variant.identity.schedule, point_key(variant.identity)});
  }
  return planned;
}

ExitCode run(const Flags& flags, const std::vector<std::string>& command) {
  require_dry_for_card(flags.device, flags.card);
  if (flags.device == "cuda-dry") continue_on_dry_device(command, flags.card);
  prepare_children();
  ComparisonSettings settings = settings_of(flags);
  use_allocator(settings.variants.allocator);
  std::vector<Variant> variants;
  try {
    variants = require(make_variants(settings.variants));
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());  // data that cannot be used
  }
  print_warnings(warnings_of(variants));
  const std::vector<PlannedPoint> planned = planned_points(variants);
  std::erase_if(variants, [](const Variant& variant) { return !variant.of_this_shard; });
  settings.limit = limit_for(flags, settings, variants);
  settings.how_to_lift_limit = "--force measures it all the same";
  const Provenance provenance = provenance_of(flags, command, settings.variants.allocator);
  if (const auto warning = shared_gpu_warning(provenance.environment)) {
    std::fprintf(stderr, "rematch: %s\n", warning->c_str());
  }
  if (names_cuda(settings.variants.device)) {
    std::fprintf(stderr, "rematch: predicted peaks: %s\n",
                 std::string(kTemporariesNotMeasured).c_str());
  }
  const std::string output = file_of_shard(flags.output, settings.variants.shard);
  Report report;
  try {
    report = run_comparison(settings, variants, provenance);
  } catch (InterruptedComparison& interrupted) {
    interrupted.partial.planned = planned;
    throw Interrupted(interrupted.signal,
                      interrupted.what_remains + keep_partial(output, interrupted.partial));
  }
  // The number of points of all shards, where there are several.
  if (settings.variants.shard.count > 1) report.planned = planned;
  if (!output.empty()) write_json_file(output, report_to_json(report));
  if (flags.json) {
    print(report_to_json(report).dump(2) + "\n");
  } else {
    print(render_table(report, TableFormat::kText, terminal_columns()));
    if (!computes_values(settings.variants.device) && names_cuda(settings.variants.device)) {
      print(render_launches(report, terminal_columns()));
    }
  }
  if (!output.empty()) std::fprintf(stderr, "report: %s\n", output.c_str());
  if (!flags.snapshot.empty()) {
    std::fprintf(stderr, "snapshot: %s\n", flags.snapshot.c_str());
  }
  return exit_code_of(report);
}

#else

ExitCode run(const Flags&, const std::vector<std::string>&) { refuse_without_libtorch("run"); }

#endif

}  // namespace

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  CLI::App* run_command = app.add_subcommand(
      "run", "Trains under each policy and compares: executed ops, peak bytes, time, bits");
  auto flags = std::make_shared<Flags>(*run_command);
  run_command->footer(
      "Examples:\n"
      "  rematch run --model llama_small --policy none,full,attn_only --steps 10 -o report.json\n"
      "  rematch run --model wan_small --policy 'skip_nth(2),save_mm' --schedule both\n"
      "  rematch run --model llama_small --policy none,full --repeat-reference 3 -o report.json\n"
      "  rematch run --model wan_1_3b --layers 30 --dim 64 --heads 4 --ffn 128 --tokens 64 \\\n"
      "      --steps 10 --policy none,full,attn_only\n"
      "  rematch run --model llama_small --policy none,full,attn_only --shard 0/2 -o mine.json\n"
      "  rematch merge mine.shard-*-of-2.json -o mine.json\n"
      "  rematch run --model wan_small --policy none,full --shard slurm -o mine.json\n"
      "  rematch run --model llama_small --parallel tp=2,sp --policy none,full,attn_only\n"
      "  rematch run --model llama_small --parallel tp=8,fsdp=8 --pretend-rank 16 --policy full\n"
      "With -o, rerun the command to resume an interrupted run.");
  run_command->callback(
      [&action, flags, command] { action = [flags, command] { return run(*flags, command); }; });
}

}  // namespace rematch
