#include "harness/run/children/rank_processes.h"

#include <c10/util/Logging.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "harness/process/interrupt.h"
#include "harness/process/process.h"
#include "harness/ranks/place.h"
#include "harness/run/children/out_of_memory.h"
#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/json.h"

namespace rematch {

inline Json to_value(ChildEnd end) { return static_cast<int>(end); }

inline void read_value(const JsonField& field, ChildEnd& end) {
  end = static_cast<ChildEnd>(field.integer32(0, static_cast<int>(ChildEnd::kInterrupted)));
}

template <RecordOf<ChildResult> Child, class Visit>
void visit_fields(Child& child, Visit visit) {
  visit("end", child.end);
  visit("code", child.code);
  visit("error_tail", child.error_tail);
  visit("peak_resident_bytes", child.peak_resident);
  visit("memory_was_short", child.memory_was_short);
  visit("elapsed_ns", child.elapsed);
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLookInterval{20};
// The first request gets a longer timeout, because a command first has to start and to parse its
// flags.
constexpr milliseconds kPatienceToCome = std::chrono::minutes(5);
constexpr milliseconds kPatienceToTake = std::chrono::seconds(30);
// A command answers only after the child process of its rank has ended.
constexpr milliseconds kPatienceToAnswer = std::chrono::seconds(10);
constexpr milliseconds kPatienceToEnd = std::chrono::seconds(2);
constexpr const char* kEndName = "end";

std::string request_name(int number) { return "request " + std::to_string(number); }
std::string taken_name(int number) { return "taken " + std::to_string(number) + " by "; }
std::string outcome_name(int number) { return "outcome " + std::to_string(number) + " of "; }

// The outcome of the ranks that one launcher started.
struct LocalOutcome {
  LaunchResult launched;
  std::vector<std::string> results;
};

LocalOutcome run_local(Launcher& launcher, const std::string& request, milliseconds limit) {
  const MemoryFile request_file("request");
  write_in_place(request_file.path(), request);
  std::vector<std::unique_ptr<MemoryFile>> files(static_cast<std::size_t>(launcher.world()));
  for (const int rank : launcher.ranks()) {
    files[static_cast<std::size_t>(rank)] = std::make_unique<MemoryFile>("result");
  }
  LocalOutcome outcome;
  outcome.launched = launcher.run(
      [&](int rank) {
        return std::vector<std::string>{own_executable(), "point", request_file.path(),
                                        files[static_cast<std::size_t>(rank)]->path()};
      },
      limit);
  for (const int rank : launcher.ranks()) {
    outcome.results.push_back(read_text_file(files[static_cast<std::size_t>(rank)]->path()));
  }
  return outcome;
}

// Sets c10d's log level to errors, because c10d would otherwise log every connection retry to
// stderr.
const RankPlace& quiet(const RankPlace& place) {
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
  return place;
}

// Waits until a launcher has sent `name`. Returns nothing after `give_up_at` or after a signal.
std::optional<std::string> wait_for(Launcher& launcher, const std::string& name,
                                    Clock::time_point give_up_at) {
  while (true) {
    if (auto text = launcher.told(name)) return text;
    if (InterruptGuard::signal() || Clock::now() >= give_up_at) return std::nullopt;
    std::this_thread::sleep_for(kLookInterval);
  }
}

}  // namespace

RanksOutcome SpawnedRanks::run(const std::string& request, milliseconds limit) {
  LocalOutcome local = run_local(launcher_, request, limit);
  RanksOutcome outcome{local.launched.end, local.launched.message, std::nullopt,
                       std::move(local.results)};
  if (outcome.end == LaunchResult::End::kWell) return outcome;
  const int culprit = local.launched.culprit.value_or(0);  // rank 0 if no rank can be blamed
  outcome.culprit = local.launched.ranks.at(static_cast<std::size_t>(culprit));
  return outcome;
}

LeadingCommand::LeadingCommand(const RankPlace& place) : launcher_(quiet(place)) {}

LeadingCommand::~LeadingCommand() { end(/*exit_code=*/1); }

RanksOutcome LeadingCommand::run(const std::string& request, milliseconds limit) {
  if (!why_lost_.empty()) return lost(why_lost_);
  try {
    return run_on_all(request, limit);
  } catch (const RanksError& error) {
    return lost(error.what());
  }
}

RanksOutcome LeadingCommand::run_on_all(const std::string& request, milliseconds limit) {
  const int number = ++num_requests_;
  launcher_.tell(request_name(number),
                 line_of({{"request", request}, {"limit_ms", limit.count()}}));
  const milliseconds patience = number == 1 ? kPatienceToCome : kPatienceToTake;
  if (const auto absent = wait_for_others(taken_name(number), std::min(limit, patience))) {
    return lost("rank " + std::to_string(*absent) +
                (number == 1 ? " was never started" : " is gone") +
                ": its command did not accept request " + std::to_string(number) + " within " +
                std::to_string(std::min(limit, patience).count()) + " ms");
  }
  LocalOutcome local = run_local(launcher_, request, limit);
  RanksOutcome outcome{local.launched.end, local.launched.message, std::nullopt, {}};
  if (outcome.end == LaunchResult::End::kInterrupted) return outcome;
  const auto outcome_of = [&](int rank) {
    return wait_for(launcher_, outcome_name(number) + std::to_string(rank),
                    Clock::now() + kPatienceToAnswer);
  };
  if (outcome.end != LaunchResult::End::kWell) {
    const int culprit = local.launched.culprit.value_or(0);
    if (culprit == 0) {
      outcome.culprit = local.launched.ranks.front();
    } else if (const auto text = outcome_of(culprit)) {
      const Json message = parse_json(*text, "outcome");
      read_value(JsonField(message).at("child"), outcome.culprit);
    } else {
      why_lost_ = "rank " + std::to_string(culprit) + " is lost: its command does not answer";
    }
    return outcome;
  }
  outcome.results = std::move(local.results);
  for (int rank = 1; rank < launcher_.world(); ++rank) {
    const auto text = outcome_of(rank);
    if (!text) return lost("rank " + std::to_string(rank) + " is lost: its result did not arrive");
    const Json message = parse_json(*text, "outcome");
    outcome.results.push_back(JsonField(message).at("result").string());
  }
  return outcome;
}

RanksOutcome LeadingCommand::lost(const std::string& why) {
  if (InterruptGuard::signal()) return {LaunchResult::End::kInterrupted, "interrupted", {}, {}};
  why_lost_ = why;
  return {LaunchResult::End::kFailed, why, std::nullopt, {}};
}

// Returns the first rank that has not answered within `patience`.
std::optional<int> LeadingCommand::wait_for_others(const std::string& prefix,
                                                   milliseconds patience) {
  const Clock::time_point give_up_at = Clock::now() + patience;
  for (int rank = 1; rank < launcher_.world(); ++rank) {
    if (!wait_for(launcher_, prefix + std::to_string(rank), give_up_at)) return rank;
  }
  return std::nullopt;
}

// Keeps the store in this process alive until the other commands have read the exit code.
void LeadingCommand::end(int exit_code) {
  if (std::exchange(has_ended_, true)) return;
  try {
    launcher_.tell(request_name(num_requests_ + 1), line_of({{"exit_code", exit_code}}));
    const Clock::time_point give_up_at = Clock::now() + kPatienceToEnd;
    for (int rank = 1; rank < launcher_.world(); ++rank) {
      while (!launcher_.told(kEndName + std::to_string(rank)) && Clock::now() < give_up_at) {
        std::this_thread::sleep_for(kLookInterval);
      }
    }
  } catch (const RanksError&) {
    // The store is gone, so the other commands already know that the job has ended.
  }
}

int follow_rank_0(const RankPlace& place) {
  const InterruptGuard interrupts;
  Launcher launcher(quiet(place));
  const std::string rank = std::to_string(place.rank);
  const auto check_signal = [] {
    if (const auto signal = InterruptGuard::signal()) {
      throw Interrupted(*signal, "see the output of rank 0 for the results that are kept");
    }
  };
  for (int number = 1;; ++number) {
    const auto text = wait_for(launcher, request_name(number), Clock::time_point::max());
    check_signal();
    const Json message = parse_json(*text, "request");
    const JsonField task(message);
    if (const auto exit_code = task.find("exit_code")) {
      launcher.tell(kEndName + rank, "");
      return exit_code->integer32();
    }
    launcher.tell(taken_name(number) + rank, "");
    const LocalOutcome local =
        run_local(launcher, task.at("request").string(), milliseconds(task.at("limit_ms").count()));
    check_signal();
    launcher.tell(outcome_name(number) + rank,
                  line_of({{"child", to_value(local.launched.ranks.front())},
                           {"result", local.results.front()}}));
  }
}

}  // namespace rematch
