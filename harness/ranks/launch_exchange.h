// Lets the launchers of a job tell each other, through the job's store, how their ranks are doing.
// Also decides which rank is to blame if the job fails.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

// The last known state of a rank when the job is stopped.
struct RankState {
  int rank = 0;
  bool was_started = true;
  // The time, on the steady clock, at which the launcher saw that the rank had ended. Absent if the
  // rank runs, or if the launcher ended it.
  std::optional<std::chrono::nanoseconds> ended_at;
  int signal = 0;         // signal that ended the rank; 0 if no signal did
  int exit_code = 0;      // exit code, if no signal ended the rank
  std::string last_line;  // last line of the rank's stderr
  // True if the rank belongs to another launcher that has sent messages earlier but is now silent.
  bool is_silent = false;
  RankNote note;
};

struct Blame {
  int rank = 0;
  std::string message;  // one line such as "rank 2 ended first, signal 9"
};

// Returns the rank that failed first. Prefers a rank that a signal ended, because a failure of
// another rank causes no signal. Ranks that lost a connection come last. If all ranks that ended
// had lost a connection, and other ranks still run, returns the running rank that is furthest
// behind, because it hangs. Absent if no rank failed. Pure.
std::optional<Blame> blame_of_failure(const std::vector<RankState>& ranks);

// Returns the running rank that is furthest behind. Absent if all ranks have made the same
// progress. Pure.
std::optional<Blame> blame_of_delay(const std::vector<RankState>& ranks);

class LaunchExchange {
 public:
  // Creates an exchange for the `world` ranks of a job. Each rank has its own key in the store.
  LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world);

  // Publishes the states of the local ranks and reads the states of all ranks, periodically or,
  // with `at_once`, immediately. Costs nothing if all ranks are local.
  void exchange(const std::vector<RankState>& here, bool at_once);
  // The states, one per rank. A rank that was never heard from counts as not started. A running
  // rank counts as silent if no message about it arrives for kSilence.
  static constexpr std::chrono::seconds kSilence{10};
  const std::vector<RankState>& states() const { return states_; }

  // Returns whether the store, which rank 0's launcher serves, is gone.
  bool has_lost_store() const { return has_lost_store_; }

 private:
  void hear(std::size_t rank, const std::string& text, std::chrono::steady_clock::time_point now);

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankState> states_;
  std::vector<bool> is_here_;
  std::int64_t beat_ = 0;           // changes in every message, which shows that this launcher is
                                    // alive
  std::vector<std::string> heard_;  // last text heard from each rank of another launcher
  std::vector<std::chrono::steady_clock::time_point> heard_at_;
  std::chrono::steady_clock::time_point next_{};
  bool has_lost_store_ = false;
};

// These two functions write a state as one line, and read it back.
std::string text_of(const RankState& state);
RankState state_of(const std::string& text);

}  // namespace rematch
