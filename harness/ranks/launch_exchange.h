// Exchanges through a job's store what its launchers know about each other's ranks. Also decides
// which rank is to blame if the job fails.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

// The known state of a rank when the job is given up.
struct RankState {
  int rank = 0;
  bool was_started = true;
  // The time of the steady clock at which the rank was seen to have ended. Absent if it runs, or if
  // the launcher ended it.
  std::optional<std::chrono::nanoseconds> ended_at;
  int signal = 0;         // the signal that ended it; 0: none
  int exit_code = 0;      // if no signal ended it
  std::string last_line;  // last line of its stderr
  // Another launcher runs the rank. It was heard from earlier but no longer is.
  bool is_silent = false;
  RankNote note;
};

struct Blame {
  int rank = 0;
  std::string message;  // "rank 2 ended first, signal 9"
};

// Returns the rank that ended badly first. A rank ended by a signal comes first, because no other
// rank caused that. Ranks that lost a connection come last. If all that ended had lost a connection
// and others still run, blames the running rank that is furthest behind, because it hangs. Absent
// if no rank ended badly. Pure.
std::optional<Blame> blame_of_failure(const std::vector<RankState>& ranks);

// Returns the running rank that is furthest behind. Absent if all are equal. Pure.
std::optional<Blame> blame_of_delay(const std::vector<RankState>& ranks);

class LaunchExchange {
 public:
  // Covers the ranks of a job of `world` ranks, under separate keys in the store.
  LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world);

  // Publishes the states of the local ranks and reads those of all ranks. Does so periodically, or
  // at once with `at_once`. Costs nothing if no rank is elsewhere.
  void exchange(const std::vector<RankState>& here, bool at_once);
  // The states, one per rank. A rank that was never heard from was not started. A rank that was
  // heard from and has not ended is silent after kSilence without a message.
  static constexpr std::chrono::seconds kSilence{10};
  const std::vector<RankState>& states() const { return states_; }

  // The store is gone, and rank 0's launcher with it.
  bool has_lost_store() const { return has_lost_store_; }

 private:
  void hear(std::size_t rank, const std::string& text, std::chrono::steady_clock::time_point now);

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankState> states_;
  std::vector<bool> is_here_;
  std::int64_t beat_ = 0;           // shows listeners that this launcher is alive
  std::vector<std::string> heard_;  // the last text of each rank elsewhere
  std::vector<std::chrono::steady_clock::time_point> heard_at_;
  std::chrono::steady_clock::time_point next_{};
  bool has_lost_store_ = false;
};

// Writes a state as one line, and reads it back.
std::string text_of(const RankState& state);
RankState state_of(const std::string& text);

}  // namespace rematch
