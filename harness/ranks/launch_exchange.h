// Lets the launchers of a job exchange the states of their ranks through the job's store. Also
// decides which rank caused a failure.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

// The state of a rank when the job is stopped.
struct RankState {
  int rank = 0;
  bool was_started = true;
  // The time on the steady clock at which the launcher saw that the rank had ended. Absent if the
  // rank is running, or if the launcher ended it.
  std::optional<std::chrono::nanoseconds> ended_at;
  int signal = 0;         // signal that ended the rank; 0 if no signal did
  int exit_code = 0;      // exit code, if no signal ended the rank
  std::string last_line;  // last line of the rank's stderr
  // true if the rank belongs to another launcher that no longer sends messages
  bool is_silent = false;
  RankNote note;
};

struct Blame {
  int rank = 0;
  std::string message;  // one line such as "rank 2 ended first, signal 9"
};

// Returns the rank that failed first. Prefers a rank that a signal ended, because such a failure is
// never a consequence of another rank's failure. Ranks that only lost a connection come last. If
// all ended ranks had lost a connection, returns the running rank that is furthest behind, because
// that rank hangs. Absent if no rank failed. Pure.
std::optional<Blame> blame_of_failure(const std::vector<RankState>& ranks);

// Returns the running rank that is furthest behind. Absent if all ranks have made the same
// progress. Pure.
std::optional<Blame> blame_of_delay(const std::vector<RankState>& ranks);

class LaunchExchange {
 public:
  // Creates an exchange for the `world` ranks of a job. Each rank has its own key in the store.
  LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world);

  // Publishes the states of the local ranks and reads the states of all ranks. Does this at
  // intervals or, with `at_once`, immediately. Does nothing if all ranks are local.
  void exchange(const std::vector<RankState>& here, bool at_once);
  // One state per rank. A rank without any message counts as not started. A running rank counts as
  // silent if no message arrives for kSilence.
  static constexpr std::chrono::seconds kSilence{10};
  const std::vector<RankState>& states() const { return states_; }

  // Returns whether the store, which rank 0's launcher serves, is gone.
  bool has_lost_store() const { return has_lost_store_; }

 private:
  void hear(std::size_t rank, const std::string& text, std::chrono::steady_clock::time_point now);

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankState> states_;
  std::vector<bool> is_here_;
  std::int64_t beat_ = 0;           // number of messages sent; shows that this launcher is alive
  std::vector<std::string> heard_;  // last message about each rank of another launcher
  std::vector<std::chrono::steady_clock::time_point> heard_at_;
  std::chrono::steady_clock::time_point next_{};
  bool has_lost_store_ = false;
};

// These two functions write a state as one line, and read it back.
std::string text_of(const RankState& state);
RankState state_of(const std::string& text);

}  // namespace rematch
