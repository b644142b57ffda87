#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "harness/cli/files/output.h"
#include "harness/cli/sweep/sweep_verbs.h"
#include "harness/sweep/claims.h"
#include "harness/sweep/this_worker.h"
#include "policies/base/format.h"
#include "policies/base/json.h"

namespace rematch {
namespace {

struct SweepStatusFlags {
  explicit SweepStatusFlags(CLI::App& app) {
    app.add_option("folder", folder, "Folder of the sweep")->required();
    app.add_flag("--watch", watch, "Refresh every two seconds until the sweep is over");
    app.add_flag("--json", json, "Print JSON instead of the table");
  }
  std::string folder;
  bool json = false;
  bool watch = false;
};

constexpr std::array<std::pair<ClaimState, const char*>, 6> kStates = {
    {{ClaimState::kDone, "done"},
     {ClaimState::kFailed, "failed"},
     {ClaimState::kSkipped, "skipped"},
     {ClaimState::kHeld, "held"},
     {ClaimState::kStale, "stale"},
     {ClaimState::kFree, "free"}}};

const char* word_of(ClaimState state) {
  for (const auto& [known, word] : kStates) {
    if (known == state) return word;
  }
  return "held";
}

// One row of the status table.
struct Row {
  const PlannedComparison* comparison = nullptr;
  Judgement judged;
  std::chrono::milliseconds held{0};  // age of the claim, estimated from its heartbeats
};

// Returns how long ago the claim file last grew, by this host's clock. Used only for display.
std::chrono::milliseconds silence_of(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  const auto since = std::chrono::system_clock::now() -
                     std::chrono::system_clock::from_time_t(status.st_mtim.tv_sec);
  return std::chrono::duration_cast<std::chrono::milliseconds>(since);
}

std::vector<Row> rows_of(const SweepStatusFlags& flags, const ComparisonPlan& plan,
                         const Claims& claims) {
  const ClaimRule rule{plan.stale_after};
  std::vector<Row> rows;
  for (const PlannedComparison& comparison : plan.comparisons) {
    Row row{&comparison, claims.of(comparison.id), {}};
    ClaimState& state = row.judged.state;
    if (state == ClaimState::kUnsure) {
      const std::string file =
          flags.folder + "/claims/" + claim_name(comparison.id, row.judged.generation);
      const bool is_silent = silence_of(file) > rule.stale_after;
      state = is_silent ? ClaimState::kStale : ClaimState::kHeld;
    }
    row.held = row.judged.num_beats * rule.beat_every();
    rows.push_back(std::move(row));
  }
  return rows;
}

bool is_over(ClaimState state) {
  return state == ClaimState::kDone || state == ClaimState::kFailed ||
         state == ClaimState::kSkipped;
}

// Sums the predicted time of comparisons that are not over. Subtracts the time already spent on
// comparisons in progress. Zero if the plan predicts no times.
std::chrono::milliseconds time_left(const std::vector<Row>& rows) {
  constexpr std::chrono::milliseconds kNone{0};
  std::chrono::milliseconds left{0};
  for (const Row& row : rows) {
    if (is_over(row.judged.state)) continue;
    const auto behind = row.judged.state == ClaimState::kHeld ? row.held : kNone;
    left += std::max(kNone, row.comparison->predicted.time.value_or(kNone) - behind);
  }
  return left;
}

std::int64_t num_in(ClaimState state, const std::vector<Row>& rows) {
  return std::ranges::count(rows, state, [](const Row& row) { return row.judged.state; });
}

// Estimates the time until the sweep is over. The estimate is never shorter than the longest
// comparison that no worker has started.
std::chrono::milliseconds time_left_for(const std::vector<Row>& rows, std::int64_t num_workers) {
  std::chrono::milliseconds longest{0};
  for (const Row& row : rows) {
    if (!is_over(row.judged.state) && row.judged.state != ClaimState::kHeld) {
      longest = std::max(longest, row.comparison->predicted.time.value_or(longest));
    }
  }
  return std::max(longest, time_left(rows) / num_workers);
}

Json nanoseconds_json(std::chrono::nanoseconds time) { return time.count(); }

Json to_json(const ComparisonPlan& plan, const std::vector<Row>& rows) {
  Json comparisons = Json::array();
  for (const Row& row : rows) {
    const bool is_held =
        row.judged.state == ClaimState::kHeld || row.judged.state == ClaimState::kStale;
    const auto& holder = row.judged.holder;
    comparisons.push_back({{"id", row.comparison->id},
                           {"model", row.comparison->spec.preset},
                           {"state", word_of(row.judged.state)},
                           {"generation", row.judged.generation},
                           {"host", is_held && holder ? Json(holder->host) : Json(nullptr)},
                           {"pid", is_held && holder ? Json(holder->pid) : Json(nullptr)},
                           {"held_ns", is_held ? nanoseconds_json(row.held) : Json(nullptr)},
                           {"reason", row.judged.reason}});
  }
  Json words = Json::object();
  for (const auto& [state, word] : kStates) words[word] = num_in(state, rows);
  const std::int64_t num_workers = num_in(ClaimState::kHeld, rows);
  return {{"schema", "rematch.sweep_status/1.0"},
          {"plan", plan.id},
          {"counts", std::move(words)},
          {"predicted_time_left_ns", nanoseconds_json(time_left(rows))},
          {"predicted_time_left_of_workers_ns",
           num_workers > 0 ? nanoseconds_json(time_left_for(rows, num_workers)) : Json(nullptr)},
          {"comparisons", std::move(comparisons)}};
}

std::string to_text(const std::vector<Row>& rows) {
  std::string text = std::to_string(rows.size()) + " comparisons:";
  for (const auto& [state, word] : kStates) {
    text += " " + std::to_string(num_in(state, rows)) + " " + word + ",";
  }
  text.back() = '\n';
  const auto left = time_left(rows);
  if (left.count() > 0) {
    text += "about " + format_duration(left) + " left for one worker";
    if (const std::int64_t num_workers = num_in(ClaimState::kHeld, rows); num_workers > 1) {
      text += ", " + format_duration(time_left_for(rows, num_workers)) + " for the " +
              std::to_string(num_workers) + " running";
    }
    text += ", by the plan's estimate\n";
  }
  for (const Row& row : rows) {
    const auto& holder = row.judged.holder;
    if (row.judged.state == ClaimState::kHeld || row.judged.state == ClaimState::kStale) {
      text +=
          "  " + row.comparison->id + " " + word_of(row.judged.state) + " by " +
          (holder ? holder->host + ", pid " + std::to_string(holder->pid) : "an unknown worker") +
          ", start " + std::to_string(row.judged.generation);
      if (row.held.count() > 0) text += ", for at least " + format_duration(row.held);
      text += "\n";
    }
    if (row.judged.state == ClaimState::kFailed || row.judged.state == ClaimState::kSkipped) {
      text += "  " + comparison_words(*row.comparison) + ": " + word_of(row.judged.state) + ": " +
              row.judged.reason + "\n";
    }
  }
  return text;
}

ExitCode status(const SweepStatusFlags& flags) {
  const ComparisonPlan plan = require_comparison_plan(flags.folder);
  DiskSweepFolder folder(flags.folder);
  Claims claims = claims_of(plan, folder);
  const InterruptGuard signals(kWorkerSignals);
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  constexpr std::chrono::milliseconds kRefresh{2000};
  while (true) {
    claims.look();
    const std::vector<Row> rows = rows_of(flags, plan, claims);
    const bool all_over = std::all_of(rows.begin(), rows.end(),
                                      [](const Row& row) { return is_over(row.judged.state); });
    if (flags.watch && is_terminal) print("\x1b[H\x1b[2J");
    print(flags.json ? to_json(plan, rows).dump(flags.watch ? -1 : 2) + "\n" : to_text(rows));
    if (!flags.watch || all_over) return ExitCode::kOk;
    sleep_until_told(kRefresh);
    if (const auto signal = InterruptGuard::signal()) return static_cast<ExitCode>(128 + *signal);
  }
}

}  // namespace

void add_sweep_status(CLI::App& sweep, Action& action) {
  add_command<SweepStatusFlags>(
      sweep, action, "status",
      "Shows which comparisons of a sweep are done, failed, skipped, running, stale or free",
      status,
      "Examples:\n"
      "  rematch sweep status results/wan --watch\n"
      "  rematch sweep status results/wan --json\n"
      "This host's clock measures how long a claim has been silent; each worker uses its own "
      "clock.");
}

}  // namespace rematch
