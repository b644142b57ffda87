#include "harness/cli/flags/shared_flags.h"

#include <cctype>

#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/files/profile_card.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/libtorch/parts.h"
#include "models/preset/parallel.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/search/front/measured_front.h"

namespace rematch {
namespace {

constexpr int kMaxRetries = 1000;
constexpr int kMaxPoints = 10'000;
constexpr int kMaxRepeats = 1000;
constexpr int kUsualRepeats = 4;

std::string after(const std::string& when, std::string help) {
  if (!when.empty()) help[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(help[0])));
  return when + help;
}

}  // namespace

void OutputFlags::add_output_flags(CLI::App& app, const std::string& help) {
  app.add_option("-o,--output", output, help)->check([](const std::string& file) {
    return std::string(file.empty() ? "the file name is empty; give a name, or leave the flag out"
                                    : "");
  });
  app.add_flag("--overwrite", overwrite,
               "Let -o replace an input of the command, a file of another kind, or a record of "
               "another model");
}

OutputRequest OutputFlags::request(std::vector<std::string_view> kinds,
                                   std::vector<std::string> inputs) const {
  return {output, overwrite, std::move(kinds), std::move(inputs)};
}

void RecordFlags::add_record_flags(CLI::App& app, const std::string& schema) {
  app.add_flag("--json", json, schema + " on stdout instead of the table");
  app.add_flag("--markdown", markdown, "Print the table as Markdown, for a pull request");
  add_output_flags(app, "Also write " + schema + " to this file");
}

void RecordFlags::require_one_format() const {
  if (json && markdown) throw UsageError("give --json or --markdown, not both");
}

void RecordFlags::show_record(const std::function<Json()>& record,
                              const std::function<std::string(TableFormat)>& table) const {
  show(output, json, record,
       [&] { return table(markdown ? TableFormat::kMarkdown : TableFormat::kText); });
}

void PolicyFlags::add_policy_flags(CLI::App& app) {
  app.add_option("--policy", policies,
                 "Policies to compare, separated by commas; see rematch list");
  app.add_option(
      "--plan", plan_files,
      "Plan files, or points of a front such as front.json#3; can be combined with --policy");
  app.add_flag("--allow-no-effect", allow_no_effect, "Accept plans that change nothing");
}

void MeasureFlags::add_measure_flags(CLI::App& app, const std::string& when) {
  app.add_option("--steps", num_steps, after(when, "Number of steps in each pass and round"))
      ->check(CLI::Range(1, kMaxSteps));
  app.add_option("--rounds", rounds,
                 after(when,
                       "Number of rounds of timed steps: N, or MIN:MAX to stop once --precision is "
                       "reached; 0: no times. A round starts one child process for each point"));
  app.add_option("--timed-steps", num_timed_steps,
                 after(when, "Number of timed steps in each round (default: --steps)"))
      ->check(CLI::Range(1, kMaxSteps));
  app.add_flag(
      "--in-process", in_process,
      after(when,
            "Time all points alternately in one process, and the reference once more in a fresh "
            "process, as a control. Faster if starting a process takes longer than a step"));
  app.add_option(
      "--precision", precision,
      after(when, "Stop once half the width of every ratio's confidence interval is at most this"));
  app.add_option("--seed", seed, after(when, "Seed of data and random number generators"))
      ->check(CLI::Range(0, kMaxSteps));
  add_threads(app, num_threads);
  app.add_option("--timeout", timeout,
                 after(when,
                       "Time limit of each child process, such as 90s; with --in-process, of each "
                       "point"));
  app.add_option("--retries", num_retries,
                 after(when,
                       "Number of restarts of a child process that timed out, or was killed "
                       "while memory was free"))
      ->check(CLI::Range(0, kMaxRetries));
  app.add_flag("--fresh", fresh,
               after(when, "Measure again the points that an interrupted run has finished"));
  add_force(app, force);
}

void KernelFlags::add_kernel_flags(CLI::App& app, const std::string& when) {
  app.add_option(
      "--attention", attention,
      after(when,
            "Attention backend: flash, cudnn, efficient or math (default: the first backend that "
            "supports the device and the dtype; for times on CUDA, LibTorch's choice)"));
  app.add_flag("--deterministic-times", deterministic_times,
               after(when, "Time CUDA's deterministic kernels instead of its fastest kernels"));
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

void add_threads(CLI::App& app, int& num_threads) {
  app.add_option("--threads", num_threads,
                 "Thread count of LibTorch (default: LibTorch's choice, shared among ranks)")
      ->default_str("")
      ->check(CLI::Range(1, kMaxThreads));
}

void add_ceilings(CLI::App& app, std::string& file) {
  app.add_option("--ceilings", file,
                 "With --device h200: file from scripts/gpu/ceilings.py. Its measured rates of "
                 "matmuls, attention and memory replace the data sheet's rates");
}

void add_any_card(CLI::App& app, bool& any_card) {
  app.add_flag(
      "--any-card", any_card,
      "Use the times of --profile even if they were measured on a card other than the plan's");
}

void add_reserve(CLI::App& app, std::string& reserve) {
  app.add_option(
      "--reserve", reserve,
      "Memory of the card to reserve for the driver, the CUDA context, NCCL and fragmentation, "
      "such as 2GiB; 0B gives tensors all memory (default: depends on the card)");
}

std::optional<Bytes> parse_reserve(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "0" || text == "0B") return Bytes{};
  require_unit("--reserve", text);
  return parse_bytes(text);
}

Bytes memory_less_reserve(Bytes memory, Bytes reserve) {
  if (reserve < memory) return memory - reserve;
  throw UsageError("a reserve of " + format_bytes(reserve) + " uses up the whole budget of " +
                   format_bytes(memory) + "; give more memory, or a smaller --reserve");
}

void add_force(CLI::App& app, bool& force) {
  app.add_flag("--force", force, "Run even if the predicted memory exceeds this machine's memory");
}

RunFlags::RunFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  add_policy_flags(app);
  app.add_option(
      "--schedule", schedule,
      "whole_region, on_demand, both or usual. With usual, points of a front run under the "
      "front's schedule, modes of other systems under whole_region, and the rest under "
      "on_demand");
  app.add_option("--device", device,
                 "cpu, meta, cuda, cuda:1, or cuda-dry, which imitates CUDA's kernel launches and "
                 "memory without a GPU");
  app.add_option("--card", card,
                 "Card that cuda-dry imitates: h100, h200, l40s or a100 (default: h100)");
  add_kernel_flags(app);
  app.add_flag("--cuda-graph", cuda_graph,
               "On CUDA: capture one step into a CUDA graph, time its replays and compare their "
               "bits. A point whose step cannot be captured is refused");
  app.add_option("--allocator", allocator,
                 "CUDA allocator: caching, or expandable for expandable segments (default: taken "
                 "from PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF)");
  add_measure_flags(app);
  app.add_option("--optimizer", optimizer,
                 "adamw, adamw(learning_rate=3e-4), or none for only forward and backward");
  app.add_option("--data", data_file,
                 "Text file to train on (default: the text that ships with rematch)");
  app.add_option("--pretend-rank", pretend_rank,
                 "Measure this rank of --parallel's layout alone, in one process: collectives "
                 "fill their results locally, so counts and bytes are right, but values are wrong")
      ->check(CLI::Range(0, static_cast<int>(kMaxWorld) - 1));
  app.add_option("--reference", reference, "Policy to which the other policies are compared");
  app.add_option("--repeat-reference", num_repeats,
                 "Number of further runs of the reference, from which rematch gate computes the "
                 "noise. Without a number the flag means 4 (default: 0)")
      ->expected(0, 1)
      ->default_str(std::to_string(kUsualRepeats))
      ->check(CLI::Range(0, kMaxRepeats));
  app.add_option("--shard", shard,
                 "Run only one share of the points. INDEX/COUNT counts shares from 0, so eight "
                 "shares are 0/8 to 7/8; slurm runs the share of this task in a Slurm job array");
  app.add_flag(
      "--times-only", times_only,
      "Only time the steps, without op counts or a bitwise comparison. For models whose exact "
      "passes take minutes");
  app.add_option(
      "--snapshot", snapshot,
      "File for the CUDA allocator's snapshot over one step of one policy, for "
      "pytorch.org/memory_viz. With several ranks, x.pickle becomes one file per rank, such as "
      "x.rank-0-of-2.pickle");
  add_output_flags(app,
                   "Report to write. Finished points are stored in a folder beside the report, and "
                   "a rerun resumes from these points");
  app.add_flag("--json", json, "Print the report instead of the table");
}

PredictFlags::PredictFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  app.add_option("--trace", trace_file, "Stored trace to use instead of --model");
  add_policy_flags(app);
  app.add_option(
      "--schedule", schedule,
      "whole_region, on_demand, both or usual. With usual, points of a front run under the "
      "front's schedule, modes of other systems under whole_region, and the rest under "
      "on_demand");
  optimizer_option =
      app.add_option("--optimizer", optimizer,
                     "adamw, adamw(state=bfloat16), adamw8bit, muon, sgd, sgd(momentum=0.9) or "
                     "none (default: the optimizer of the front that --plan names, else adamw)");
  model.add_world(app);
  app.add_flag("--round-512", round_512, "Round sizes as CUDA's caching allocator does");
  app.add_option("--device", device,
                 "Also predict how long steps take, from the card's data sheet: h100, h200, "
                 "l40s, a100 or b200");
  app.add_option("--links", links_file,
                 "With --device: file from rematch profile --links. Its times of collectives "
                 "replace the data sheet's times");
  add_ceilings(app, ceilings_file);
  app.add_option("--profile", profile_file,
                 "Also predict how long steps take, from a profile's times. With --round-512 and a "
                 "profile of a GPU, also predict the memory that kernels allocate internally");
  add_any_card(app, any_card);
  add_reserve(app, reserve);
  app.add_flag("--json", json, "Print JSON instead of the table");
}

SearchFlags::SearchFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  app.add_option("--trace", trace_file, "Stored trace to use instead of --model");
  app.add_option("--profile", profile_file,
                 "Profile with the times of the ops, from rematch profile");
  add_any_card(app, any_card);
  app.add_option("--device", device,
                 "cpu or cuda: times are measured here; h100, h200, l40s, a100 or b200: times come "
                 "from the card's data sheet or, with --profile, from a profile measured on that "
                 "card");
  add_kernel_flags(app, "For times measured here: ");
  app.add_option("--doctor", doctor_file,
                 "Output of rematch doctor --json on the GPU's machine; its measured memory "
                 "replaces the data sheet's");
  schedule_option = app.add_option("--schedule", schedule, "on_demand or whole_region");
  app.add_option("--for", target,
                 "torchtitan, torchtune, fastvideo, diffusers, modalities, transformers, axolotl, "
                 "megatron or remat: search only this trainer's own checkpointing modes, and print "
                 "its configuration lines. torch: search only plans that rematch export --to torch "
                 "can write: each region is a whole module, and the schedule is whole_region");
  app.add_option("--optimizer", optimizer,
                 "Optimizer whose state is part of every peak: adamw, adamw(state=bfloat16), "
                 "adamw8bit, muon, sgd, sgd(momentum=0.9) or none");
  model.add_world(app);
  app.add_option("--budget", budget,
                 "Print the fastest plan whose peak is at most this size, such as 24GiB");
  app.add_option("--free", free,
                 "Print the fastest plan whose peak without parameters and optimizer state is at "
                 "most this size, such as 16GiB; gradients are part of this peak");
  app.add_option("--activation-budget", activation_budget,
                 "Print the fastest plan whose peak without parameters, gradients and optimizer "
                 "state is at most this size, such as 16GiB");
  add_reserve(app, reserve);
  app.add_option(
      "--max-slowdown", max_slowdown,
      "Print the plan with the lowest peak among plans that are at most this percentage slower "
      "than the fastest, such as 5%");
  app.add_option(
      "--maximize", maximize,
      "tokens_per_second: find the batch size or token count that processes the most tokens per "
      "second, and the largest one that fits. The limit is --budget, else the device's memory. "
      "Give the range to search: --batch 1:64 or --tokens 1024:16384");
  app.add_option(
         "--points", num_points,
         "Number of points to print, chosen from all points found. The answer, and points that "
         "match baselines, are printed in addition")
      ->check(CLI::Range(2, kMaxPoints));
  app.add_option("--baselines", baselines,
                 "Policies that the front is compared with, separated by commas; also PyTorch's "
                 "planners: pytorch_dp(0.5), pytorch_ilp(0.5), sac_ilp(0.8) (default: known "
                 "policies and these planners)")
      ->check([](const std::string& list) {
        return std::string(
            list.empty()
                ? "the list is empty; name policies, or leave the flag out for the known policies"
                : "");
      });
  app.add_flag("--simple", simple,
               "Print only the best simple plan, which rematch export can write for a trainer. A "
               "simple plan recomputes whole blocks or whole modules. All layers share one save "
               "list, or each of two groups of layers has its own");
  app.add_flag(
      "--hull", hull,
      "Use only the options of each block that lie on the block's convex hull. The search is "
      "faster and finds fewer plans");
  app.add_option(
      "--links", links_file,
      "File from rematch profile --links. With --device h100, its times of collectives replace the "
      "data sheet's times. With --offload, its rates of copies replace the data sheet's rates");
  add_ceilings(app, ceilings_file);
  app.add_flag(
      "--offload", offload,
      "Also search plans that copy region inputs and kept values to the host until backward; "
      "step times include the copies that compute does not hide");
  app.add_option("--link-rate", link_rate,
                 "With --offload: rate of copies in each direction, such as 50GB/s (default: the "
                 "rates in --links, else the PCIe rate in the device's data sheet)");
  app.add_option("--measure", num_measured,
                 "Number of points of the front to run and measure, in addition to the baselines. "
                 "The ends and the knee run first and calibrate the step times")
      ->default_str("")
      ->check(CLI::Range(kMinMeasured, kMaxPoints));
  add_measure_flags(app, "With --measure: ");
  app.add_flag("--fail-behind-baselines", fail_behind_baselines,
               "Exit with 3 if a baseline's predicted hypervolume exceeds the front's, or if its "
               "measured hypervolume exceeds the front's by more than the A/A interval");
  add_output_flags(app, "Front to write");
  app.add_flag("--json", json, "Print the front instead of the table");
}

std::optional<Profile> profile_of(const PredictFlags& flags, const Trace& trace) {
  if (!flags.profile_file.empty()) {
    Profile profile = require_profile(flags.profile_file, trace);
    if (!flags.any_card) {
      require_card(profile, flags.profile_file, {flags.device, "", cards_here()});
    }
    return profile;
  }
  if (flags.device.empty()) return std::nullopt;
  return sheet_profile(trace, flags.device, {flags.links_file, flags.ceilings_file});
}

}  // namespace rematch
