// Who is to blame when a job of ranks goes wrong: all others fail or wait after it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch {

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

}  // namespace rematch
