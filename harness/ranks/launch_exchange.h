// The knowledge that the launchers of one job have of each other's ranks, through the job's store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

// Who is to blame when a job of ranks goes wrong: all others fail or wait after it. Pure.

// The known state of a rank at the moment when the job is given up.
struct RankState {
  int rank = 0;
  bool was_started = true;
  // By itself, not because the launcher made it; at which time of the steady clock that was seen.
  std::optional<std::chrono::nanoseconds> ended_at;
  int signal = 0;          // that ended it; 0: none
  int exit_code = 0;       // if no signal did
  std::string last_line;   // of its stderr
  bool is_silent = false;  // its launcher, elsewhere, was heard of and is no longer
  RankNote note;
};

struct Blame {
  int rank = 0;
  std::string message;  // "rank 2 ended first, signal 9"
};

// The rank that ended badly first. A signal is nobody else's fault; of the others, those that lost
// a connection come last. Where all that ended lost a connection and some run on, the one of these
// that is furthest behind hangs. Nothing if no rank ended badly.
std::optional<Blame> blame_of_failure(const std::vector<RankState>& ranks);

// The rank that is furthest behind among those that have not ended. Nothing if all are equal.
std::optional<Blame> blame_of_delay(const std::vector<RankState>& ranks);

class LaunchExchange {
 public:
  // Covers the ranks of a job of `world`, in keys of their own in the store.
  LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world);

  // Tells the states of the ranks here and takes those of all, every so often, and at once where
  // `at_once`. With no ranks elsewhere it costs nothing.
  void exchange(const std::vector<RankState>& here, bool at_once);
  // By rank; one that was not heard of was never started. One that was heard of and has not ended
  // is silent once nothing was heard for so long.
  static constexpr std::chrono::seconds kSilence{10};
  const std::vector<RankState>& states() const { return states_; }

  // The store is gone, and with it the launcher of rank 0.
  bool has_lost_store() const { return has_lost_store_; }

 private:
  void hear(std::size_t rank, const std::string& text, std::chrono::steady_clock::time_point now);

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankState> states_;
  std::vector<bool> is_here_;
  std::int64_t beat_ = 0;           // so that those who listen see that this launcher lives
  std::vector<std::string> heard_;  // last, of each rank elsewhere
  std::vector<std::chrono::steady_clock::time_point> heard_at_;
  std::chrono::steady_clock::time_point next_{};
  bool has_lost_store_ = false;
};

// The state as one line, and back.
std::string text_of(const RankState& state);
RankState state_of(const std::string& text);

}  // namespace rematch
