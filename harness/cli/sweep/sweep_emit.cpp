#include <filesystem>
#include <optional>
#include <sstream>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/measure/source_state.h"
#include "harness/process/process.h"
#include "harness/sweep/job_script.h"
#include "policies/base/format.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxWorkers = 100'000;
constexpr int kMaxCpus = 4096;

struct SweepEmitFlags {
  explicit SweepEmitFlags(CLI::App& app) {
    app.add_option("folder", folder, "Folder of the sweep")->required();
    app.add_option("--engine", engine, "slurm or local");
    app.add_option("--workers", job.num_workers,
                   "Number of workers; with slurm, each worker is a task of the job array")
        ->check(CLI::Range(1, kMaxWorkers));
    app.add_option(
        "--time", time,
        "With slurm: time limit of a task, such as 45min; the task is requeued at the limit");
    app.add_option(
        "--gres", job.gres,
        "With slurm: resources of a task, such as gpu:h100:1, or none (default: gpu:1 on CUDA)");
    app.add_option("--cpus", job.num_cpus, "With slurm: number of cores of a task")
        ->check(CLI::Range(1, kMaxCpus));
    app.add_option("--slurm", slurm,
                   "With slurm: further options of sbatch, such as partition=gpu,account=me");
    app.add_option(
        "--prefix", job.prefix,
        "Command that starts the program, such as 'apptainer exec --nv image.sif' or 'srun "
        "--kill-on-bad-exit=0'");
    app.add_option("--program", job.program,
                   "Path of rematch on the workers (default: this program's path)");
  }
  std::string folder;
  std::string engine = "local";
  std::string time = "60min";
  std::string slurm;
  JobScript job;  // the flags that describe the job
};

// Returns the value of `name` in a line such as "MaxArraySize = 1001" or "... MaxTime=01:00:00
// ...".
std::string value_in(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return "";
  const std::size_t equals = text.find('=', at);
  if (equals == std::string::npos) return "";
  const std::size_t start = text.find_first_not_of(' ', equals + 1);
  if (start == std::string::npos) return "";
  return text.substr(start, text.find_first_of(" \n", start) - start);
}

// sbatch rejects an index above MaxArraySize.
void require_array_fits(int num_workers) {
  const auto config = output_of("scontrol show config 2>/dev/null");
  if (!config) return;
  std::istringstream size(value_in(*config, "MaxArraySize"));
  int most = 0;
  if (!(size >> most) || num_workers <= most) return;
  throw UsageError("--workers " + std::to_string(num_workers) + " is above this cluster's " +
                   std::to_string(most) +
                   " (MaxArraySize); a job script may be submitted several times instead");
}

std::string partition_among(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (option.starts_with("partition=")) return option.substr(option.find('=') + 1);
  }
  return "";
}

// Slurm accepts a job whose time limit exceeds the limit of its partition, but never starts the
// job.
void require_limit_fits(const std::vector<std::string>& options, std::chrono::minutes limit) {
  const std::string asked = partition_among(options);
  const auto all = output_of("scontrol -o show partition 2>/dev/null");
  if (!all) return;
  std::istringstream lines(*all);
  bool is_there = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = value_in(line, "PartitionName");
    const bool is_meant = asked.empty() ? value_in(line, " Default") == "YES" : name == asked;
    if (!is_meant) continue;
    is_there = true;
    const std::chrono::minutes most = slurm_minutes(value_in(line, "MaxTime"));
    if (most.count() < 0 || limit <= most) continue;
    throw UsageError("--time " + std::to_string(limit.count()) + "min is above the " +
                     std::to_string(most.count()) + "min of partition " + in_quotes(name) +
                     ", so the job would never start");
  }
  if (!is_there && !asked.empty()) {
    throw UsageError("this cluster has no partition " + in_quotes(asked));
  }
}

// Throws UsageError if the longest comparison takes longer than a worker may run. No worker could
// measure it.
void require_longest_fits(const ComparisonPlan& plan, std::chrono::minutes limit) {
  std::chrono::milliseconds longest{0};
  for (const PlannedComparison& comparison : plan.comparisons) {
    longest = std::max(longest, comparison.predicted.time.value_or(longest));
  }
  const std::chrono::seconds has = worker_time(limit);
  if (has.count() > 0 && longest <= has) return;
  const auto least = std::chrono::ceil<std::chrono::minutes>(longest) + (limit - has);
  throw UsageError(
      "--time " + std::to_string(limit.count()) + "min leaves a worker " +
      std::to_string(has.count()) + " s, and the longest comparison is predicted to take " +
      format_duration(longest) + "; give at least " +
      std::to_string(std::chrono::ceil<std::chrono::minutes>(least).count() + 1) + "min");
}

void require_plain(const std::string& flag, const std::string& text) {
  const bool is_plain = text.find_first_of(" \t\n'\"\\") == std::string::npos;
  if (is_plain) return;
  throw UsageError(flag + " " + in_quotes(text) +
                   " has a space, a quote or a backslash, which a Slurm script cannot contain");
}

std::string absolute(const std::string& path) {
  std::string text = fs::absolute(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

ExitCode emit(const SweepEmitFlags& flags) {
  const ComparisonPlan plan = require_comparison_plan(flags.folder);
  JobScript job = flags.job;
  if (job.program.empty()) job.program = own_executable();
  job.folder = absolute(flags.folder);
  job.name = fs::path(job.folder).filename().string();
  if (job.gres.empty() && plan.device == "cuda") job.gres = "gpu:1";
  if (job.gres == "none") job.gres.clear();
  if (flags.engine == "local") {
    print(local_script(job));
    return ExitCode::kOk;
  }
  if (flags.engine != "slurm") {
    throw UsageError("unknown engine " + in_quotes(flags.engine) +
                     did_you_mean(flags.engine, std::vector<std::string>{"slurm", "local"}));
  }
  job.time = std::chrono::floor<std::chrono::minutes>(parse_duration(flags.time));
  job.options = parse_list(flags.slurm);
  require_plain("the sweep's folder", job.folder);
  require_plain("--gres", job.gres);
  for (const std::string& option : job.options) require_plain("--slurm", option);
  require_longest_fits(plan, job.time);
  require_array_fits(job.num_workers);
  require_limit_fits(job.options, job.time);
  print(slurm_script(job));
  return ExitCode::kOk;
}

}  // namespace

void add_sweep_emit(CLI::App& sweep, Action& action) {
  add_command<SweepEmitFlags>(
      sweep, action, "emit",
      "Writes a script that starts workers: as a Slurm job array, or on this machine", emit,
      "Examples:\n"
      "  rematch sweep emit results/wan --engine slurm --workers 16 --gres gpu:h100:1 --time "
      "45min \\\n"
      "      --slurm partition=gpu,account=me > job.sh; sbatch job.sh\n"
      "  rematch sweep emit results/wan --engine local --workers 2 | bash\n"
      "  rematch sweep emit results/wan --engine slurm --gres none \\\n"
      "      --slurm ntasks-per-node=8,gpus-per-task=1 --prefix 'srun --kill-on-bad-exit=0' \\\n"
      "      > job.sh                                          # whole nodes of 8 cards\n"
      "If scontrol is available, jobs that the cluster would never start are rejected.");
}

}  // namespace rematch
