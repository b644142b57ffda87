#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>

#include "harness/cli/files/output.h"
#include "harness/cli/flags/flag_values.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/run_request.h"
#include "harness/cli/libtorch/parts.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/process/process.h"
#include "harness/sweep/child_measurer.h"
#include "harness/sweep/this_worker.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

struct SweepRunFlags {
  explicit SweepRunFlags(CLI::App& app) {
    app.add_option("folder", folder, "Folder of the sweep")->required();
    app.add_option(
        "--for", time,
        "Time limit, such as 40min; a comparison that is predicted to take longer is not started, "
        "and a running comparison is stopped at the limit (default: none)");
    app.add_option("--gpus", gpus, "all: start a worker for each visible card of this machine");
    app.add_flag("--retry-failed", retry_failed, "Retry each failed comparison once");
    app.add_option("--program", program,
                   "Program that runs the measurements (default: this program)");
  }
  std::string folder;
  std::string time;
  std::string gpus;
  std::string program;
  bool retry_failed = false;
};

// Returns the program that measures: this binary, or another binary that has LibTorch.
std::string program_of(const SweepRunFlags& flags) {
  if (!flags.program.empty()) {
    if (access(flags.program.c_str(), X_OK) == 0) return fs::absolute(flags.program).string();
    throw UsageError("--program " + in_quotes(flags.program) + " is not an executable program");
  }
  if (has_libtorch()) return own_executable();
  throw UsageError(
      "this build has no LibTorch and cannot measure; give a program that can measure, with "
      "--program FILE");
}

// Returns whether the points of the plan are timed on a CPU. If so, only one worker may measure at
// a time.
bool times_on_cpu(const ComparisonPlan& plan) {
  if (plan.device != "cpu" || plan.comparisons.empty()) return false;
  return rounds_of_arguments(plan.comparisons.front().arguments).most > 0;
}

std::string describe(const WorkEnd& end) {
  const std::string measured = std::to_string(end.num_measured) + " measured here";
  const std::string left = std::to_string(end.num_left);
  switch (end.why) {
    case WorkEnd::Why::kNothingLeft:
      return measured + ", nothing left";
    case WorkEnd::Why::kInOtherHands:
      return measured + ", " + left + " left, held by other workers";
    case WorkEnd::Why::kDeadline:
      return measured + ", the time is up; " + left + " left";
    case WorkEnd::Why::kStopped:
      break;
  }
  return measured + ", stopped; " + left + " left";
}

int code_of(const WorkEnd& end) {
  constexpr int kTimeIsUpCode = 75;  // EX_TEMPFAIL of sysexits.h: the caller should try again
  if (end.why == WorkEnd::Why::kDeadline) return kTimeIsUpCode;
  if (end.why == WorkEnd::Why::kStopped) return 128 + InterruptGuard::signal().value_or(SIGTERM);
  return static_cast<int>(end.num_failures > 0 ? ExitCode::kSomePointsFailed : ExitCode::kOk);
}

ExitCode run_worker(const SweepRunFlags& flags) {
  const auto start = monotonic_now();
  const ComparisonPlan plan = require_comparison_plan(flags.folder);
  ChildSettings settings;
  settings.program = program_of(flags);
  settings.folder = fs::absolute(flags.folder).lexically_normal().string();
  if (!flags.time.empty()) settings.end = start + parse_duration(flags.time);
  settings.memory = memory_limit(plan.device);
  settings.one_at_a_time = times_on_cpu(plan);
  settings.say = [](const std::string& line) {
    std::fprintf(stderr, "sweep: %s\n", one_line(line).c_str());
  };
  std::vector<WorkItem> items;
  for (const PlannedComparison& comparison : plan.comparisons) {
    const auto& least = comparison.predicted.least_peak;
    const bool fits = !settings.memory || !least || *least <= settings.memory->bytes;
    items.push_back({comparison.id, comparison.predicted.time, fits});
  }
  const InterruptGuard signals(kWorkerSignals);
  DiskSweepFolder folder(settings.folder);
  settings.beat_every = ClaimRule{plan.stale_after}.beat_every();
  Claims claims = claims_of(plan, folder);
  const WorkLimits limits{
      settings.end,
      std::min<std::chrono::milliseconds>(std::chrono::seconds(1), settings.beat_every),
      flags.retry_failed};
  ChildMeasurer measurer(plan, std::move(settings));
  const WorkEnd end = work(items, claims, measurer,
                           {monotonic_now, sleep_until_told, stop_request_by_signal}, limits);
  std::fprintf(stderr, "sweep: %s\n", describe(end).c_str());
  return static_cast<ExitCode>(code_of(end));
}

// Returns the cards that the environment makes visible, else all cards that the driver has.
std::vector<std::string> visible_cards() {
  std::vector<std::string> cards;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) return parse_list(visible);
  std::error_code none;
  std::size_t num_cards = 0;
  for (const fs::directory_entry& entry :
       fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    static_cast<void>(entry);
    cards.push_back(std::to_string(num_cards++));
  }
  return cards;
}

// Returns the worst of the workers' exit codes. The order, from the worst: stopped by a signal, out
// of time, an error, failed points.
int worst_code(const std::vector<int>& codes) {
  const auto rank = [](int code) {
    if (code > 128) return 4;
    if (code == 75) return 3;
    if (code == static_cast<int>(ExitCode::kSomePointsFailed)) return 1;
    return code == 0 ? 0 : 2;
  };
  return *std::max_element(codes.begin(), codes.end(),
                           [&](int left, int right) { return rank(left) < rank(right); });
}

// Runs one worker for each card. Each worker sees only its own card.
ExitCode run_workers(const SweepRunFlags& flags) {
  if (flags.gpus != "all") throw UsageError("--gpus takes all, not " + in_quotes(flags.gpus));
  const std::vector<std::string> cards = visible_cards();
  if (cards.empty()) throw UsageError("--gpus all: no card is visible here");
  require_comparison_plan(flags.folder);
  std::vector<std::string> command = {own_executable(), "sweep", "run", flags.folder};
  if (!flags.time.empty()) command.insert(command.end(), {"--for", flags.time});
  if (!flags.program.empty()) command.insert(command.end(), {"--program", flags.program});
  if (flags.retry_failed) command.emplace_back("--retry-failed");
  const InterruptGuard signals(kWorkerSignals);
  std::list<Child> workers;
  for (const std::string& card : cards) {
    workers.emplace_back(command, std::vector<std::string>{"CUDA_VISIBLE_DEVICES=" + card}, "");
  }
  std::vector<int> codes;
  bool is_passed_on = false;
  for (Child& worker : workers) {
    while (!worker.poll_once(std::chrono::milliseconds(200))) {
      const auto signal = InterruptGuard::signal();
      if (!signal || is_passed_on) continue;
      for (const Child& each : workers) each.send(*signal);
      is_passed_on = true;
    }
    const int status = worker.status();
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return static_cast<ExitCode>(worst_code(codes));
}

ExitCode run(const SweepRunFlags& flags) {
  return flags.gpus.empty() ? run_worker(flags) : run_workers(flags);
}

}  // namespace

void add_sweep_run(CLI::App& sweep, Action& action) {
  add_command<SweepRunFlags>(
      sweep, action, "run",
      "Starts a worker, which measures comparisons until no comparison is free", run,
      "Examples:\n"
      "  rematch sweep run results/wan\n"
      "  rematch sweep run results/wan --for 40min\n"
      "  rematch sweep run results/wan --gpus all\n"
      "  rematch sweep run results/wan --retry-failed\n"
      "Any number of workers may run, on any machine that sees the folder. They may be started "
      "and\n"
      "killed at any time. On a CPU they take turns, so that times are undisturbed.\n"
      "Exit codes: 0 nothing left, 5 some failed, 75 the time is up, 143 ended by SIGTERM.");
}

}  // namespace rematch
