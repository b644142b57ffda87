#include "harness/ranks/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "harness/measure/machine_memory.h"
#include "harness/process/interrupt.h"
#include "harness/ranks/launch_exchange.h"
#include "harness/ranks/notes.h"
#include "harness/ranks/place.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::string_literals;
using std::chrono::milliseconds;

constexpr milliseconds kPollInterval{20};
// How long other ranks may still report errors after a rank has failed.
constexpr milliseconds kGraceToTell{300};
// Time between SIGTERM and SIGKILL.
constexpr milliseconds kGraceAfterSigterm{500};

std::string last_line_of(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

// Waits until one of the children writes or ends, or until an interval has passed.
void wait_for_any(const std::vector<std::unique_ptr<Child>>& children) {
  std::vector<pollfd> ends;
  for (const auto& child : children) {
    if (!child->has_ended() && child->error_end() >= 0) {
      ends.push_back({child->error_end(), POLLIN, 0});
    }
  }
  poll(ends.data(), ends.size(), static_cast<int>(kPollInterval.count()));
}

c10::intrusive_ptr<c10d::Store> open_store(const std::string& address, std::uint16_t port,
                                           bool serves, milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = patience;
  try {
    return c10::make_intrusive<c10d::TCPStore>(address, options);
  } catch (const c10::Error& error) {
    throw RanksError(
        (serves ? "cannot serve the ranks' store at " : "no answer from the store at ") + address +
        ":" + std::to_string(port) +
        " (MASTER_ADDR, MASTER_PORT): " + error.what_without_backtrace());
  }
}

// Returns whether torchrun itself serves the store at which the ranks meet.
bool torchrun_serves() {
  const char* text = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return text != nullptr && std::string_view(text) == "True";
}

constexpr const char* kLogLevel = "TORCH_CPP_LOG_LEVEL";

// The ranks of one run that this launcher has started.
class LocalRanks {
 public:
  LocalRanks(const std::vector<RankPlace>& places, const Launcher::CommandOfRank& command)
      : board_(static_cast<int>(places.size())) {
    for (const RankPlace& place : places) {
      std::vector<std::string> environment = environment_of(place);
      environment.push_back(board_.variable(static_cast<int>(children_.size())));
      // When ranks end, c10d logs warnings with stack traces. These warnings would hide the last
      // lines that a rank printed.
      if (std::getenv(kLogLevel) == nullptr) environment.push_back(kLogLevel + "=ERROR"s);
      children_.push_back(std::make_unique<Child>(command(place.rank), environment));
      states_.emplace_back().rank = place.rank;
    }
  }

  // Polls all ranks for an interval, and records which ranks have ended. Ignores ranks that end
  // after the launcher has sent them a signal.
  void watch() {
    wait_for_any(children_);
    for (std::size_t index = 0; index < children_.size(); ++index) {
      Child& child = *children_[index];
      if (child.has_ended() || !child.poll_once(milliseconds(0)) || was_signalled_) continue;
      RankState& state = states_[index];
      state.ended_at = Clock::now().time_since_epoch();
      state.signal = WIFSIGNALED(child.status()) ? WTERMSIG(child.status()) : 0;
      state.exit_code = WIFEXITED(child.status()) ? WEXITSTATUS(child.status()) : 0;
    }
  }

  bool have_ended() const {
    return std::ranges::all_of(children_, [](const auto& child) { return child->has_ended(); });
  }
  // Returns the current states of the ranks.
  std::vector<RankState> states() const {
    std::vector<RankState> states = states_;
    for (std::size_t index = 0; index < states.size(); ++index) {
      states[index].note = board_.read(static_cast<int>(index));
      states[index].last_line = last_line_of(children_[index]->error_tail());
    }
    return states;
  }

  // Sends SIGTERM, then SIGKILL. Returns when all ranks have ended.
  void end() {
    was_signalled_ = true;
    for (const auto& child : children_) child->send(SIGTERM);
    // A stopped process does not see SIGTERM until it continues.
    for (const auto& child : children_) child->send(SIGCONT);
    const Clock::time_point kill_at = Clock::now() + kGraceAfterSigterm;
    while (!have_ended()) {
      watch();
      if (Clock::now() < kill_at) continue;
      for (const auto& child : children_) child->send(SIGKILL);
    }
  }

  std::vector<ChildResult> results(LaunchResult::End end, const MachineMemory& before,
                                   std::chrono::nanoseconds elapsed) const {
    std::vector<ChildResult> results;
    for (std::size_t index = 0; index < children_.size(); ++index) {
      ChildResult& result = results.emplace_back();
      const bool by_itself = states_[index].ended_at.has_value();
      if (!by_itself && end == LaunchResult::End::kTimedOut) result.end = ChildEnd::kTimedOut;
      if (!by_itself && end == LaunchResult::End::kInterrupted) result.end = ChildEnd::kInterrupted;
      result.elapsed = elapsed;
      take_end(*children_[index], before, result);
    }
    return results;
  }

 private:
  RankBoard board_;
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<RankState> states_;
  bool was_signalled_ = false;
};

bool all_ended(const std::vector<RankState>& states) {
  return std::ranges::all_of(states,
                             [](const RankState& state) { return state.ended_at.has_value(); });
}

bool one_ended_badly(const std::vector<RankState>& states) {
  return std::ranges::any_of(states, [](const RankState& state) {
    return state.is_silent || (state.ended_at && (state.signal != 0 || state.exit_code != 0));
  });
}

// Polls the ranks until all have ended or the job must be stopped.
LaunchResult::End watch_job(LocalRanks& local, LaunchExchange& exchange,
                            Clock::time_point give_up_at) {
  std::optional<Clock::time_point> told_by;
  while (true) {
    const bool had_ended = local.have_ended();
    local.watch();
    exchange.exchange(local.states(), /*at_once=*/local.have_ended() != had_ended);
    const bool alone_now = exchange.has_lost_store();
    const bool failed = one_ended_badly(exchange.states()) || (alone_now && !local.have_ended());
    if (all_ended(exchange.states()) || (alone_now && local.have_ended())) {
      return failed ? LaunchResult::End::kFailed : LaunchResult::End::kWell;
    }
    if (InterruptGuard::signal()) return LaunchResult::End::kInterrupted;
    const Clock::time_point now = Clock::now();
    if (failed && !told_by) told_by = now + kGraceToTell;
    if (told_by && now >= *told_by) return LaunchResult::End::kFailed;
    if (now >= give_up_at) return LaunchResult::End::kTimedOut;
  }
}

void find_culprit(const LaunchExchange& exchange, milliseconds limit, LaunchResult& result) {
  std::optional<Blame> blame;
  if (result.end == LaunchResult::End::kFailed) {
    blame = blame_of_failure(exchange.states());
    result.message = blame ? blame->message
                           : "the store of the ranks is gone: the process that started rank 0 "
                             "has ended";
  } else if (result.end == LaunchResult::End::kTimedOut) {
    blame = blame_of_delay(exchange.states());
    result.message = "not finished after " + std::to_string(limit.count()) + " ms: " +
                     (blame ? blame->message
                            : "all ranks are at the same point; raise the limit, or find out what "
                              "all ranks wait for");
  } else if (result.end == LaunchResult::End::kInterrupted) {
    result.message = "interrupted";
  }
  if (blame) result.culprit = blame->rank;
}

}  // namespace

struct Launcher::Job {
  RankPlace place;  // the store's address, and this launcher's first rank
  std::vector<int> ranks;
  c10::intrusive_ptr<c10d::Store> store;
  int num_runs = 0;

  template <class Use>
  void with_store(const Use& use) {
    try {
      c10d::PrefixStore texts("rematch texts/" + place.launch, store);
      use(texts);
    } catch (const c10::Error& error) {
      throw RanksError("rank " + std::to_string(place.rank) + " lost the store at " +
                       place.address + ":" + std::to_string(place.port) + ": " +
                       (torchrun_serves() ? "torchrun's agent" : "the command of rank 0") +
                       " has ended (" + error.what_without_backtrace() + ")");
    }
  }
};

Launcher::Launcher(int world) : job_(std::make_unique<Job>()) {
  if (world < 1) throw RanksError("a job needs at least 1 rank, not " + std::to_string(world));
  job_->place.world = world;
  for (int rank = 0; rank < world; ++rank) job_->ranks.push_back(rank);
  job_->store =
      open_store(job_->place.address, /*port=*/0, /*serves=*/true, std::chrono::minutes(1));
  job_->place.port = dynamic_cast<c10d::TCPStore&>(*job_->store).getPort();
}

Launcher::Launcher(const RankPlace& place, milliseconds patience) : job_(std::make_unique<Job>()) {
  job_->place = place;
  job_->ranks = {place.rank};
  const bool serves = place.rank == 0 && !torchrun_serves();
  job_->store = open_store(place.address, place.port, serves, patience);
}

Launcher::~Launcher() = default;

int Launcher::world() const { return job_->place.world; }
const std::vector<int>& Launcher::ranks() const { return job_->ranks; }

LaunchResult Launcher::run(const CommandOfRank& command, milliseconds limit) {
  const Clock::time_point start = Clock::now();
  const MachineMemory before = machine_memory();
  const std::string launch = job_->place.launch + "/" + std::to_string(++job_->num_runs);
  std::vector<RankPlace> places;
  for (const int rank : job_->ranks) {
    RankPlace& place = places.emplace_back(job_->place);
    place.rank = rank;
    if (job_->ranks.size() > 1) place.local_rank = rank;
    place.launch = launch;
  }
  LaunchExchange exchange(
      c10::make_intrusive<c10d::PrefixStore>("rematch launchers/" + launch, job_->store), world());
  // Announces the ranks before they start. Other launchers then notice if this launcher ends.
  std::vector<RankState> to_start;
  for (const RankPlace& place : places) to_start.emplace_back().rank = place.rank;
  exchange.exchange(to_start, /*at_once=*/true);
  LocalRanks local(places, command);
  LaunchResult result;
  result.end = watch_job(local, exchange, start + limit);
  find_culprit(exchange, limit, result);
  local.end();
  result.ranks = local.results(result.end, before, Clock::now() - start);
  return result;
}

void Launcher::tell(const std::string& name, const std::string& text) {
  job_->with_store([&](c10d::Store& store) { store.set(name, text); });
}

std::optional<std::string> Launcher::told(const std::string& name) {
  std::optional<std::string> text;
  job_->with_store([&](c10d::Store& store) {
    if (store.check({name})) text = store.get_to_str(name);
  });
  return text;
}

}  // namespace rematch
