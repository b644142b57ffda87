// Starts the ranks of a job as child processes, serves the store that they meet at, and says which
// of them went wrong first. Knows nothing of what they do.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/process/process.h"
#include "harness/ranks/place.h"

namespace rematch {

struct LaunchResult {
  enum class End : std::uint8_t { kWell, kFailed, kTimedOut, kInterrupted };
  End end = End::kWell;
  std::vector<ChildResult> ranks;  // those of this launcher, in order
  // The rank that ended badly first or, where one hangs, the one that is furthest behind.
  std::optional<int> culprit;
  std::string message;  // one line: "rank 2 ended first, signal 9"; empty if all ended well
};

// One launcher serves any number of runs, one after the other.
class Launcher {
 public:
  // All ranks of a job, on this machine. Throws RanksError for less than one.
  explicit Launcher(int world);
  // One rank of a job whose processes were started from outside: rank_place_from_environment().
  // The launcher of rank 0 serves the store at the place's address, unless torchrun does. All
  // launchers of the job make the same runs in the same order. Throws RanksError if the store
  // cannot be served or does not answer within `patience`.
  explicit Launcher(const RankPlace& place,
                    std::chrono::milliseconds patience = std::chrono::minutes(5));
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int world() const;
  const std::vector<int>& ranks() const;  // those that this launcher starts

  // Starts `command(rank)` for each of its ranks (argv; the first is a path); they find their place
  // by rank_place_from_environment(). When one ends badly, in this launcher or another one of the
  // job, the others get SIGTERM a little later, since they may want to say what they saw of it, and
  // SIGKILL within a second. The same at once after `limit`, and when an InterruptGuard saw a
  // signal. Throws std::system_error if a rank cannot be started.
  using CommandOfRank = std::function<std::vector<std::string>(int rank)>;
  LaunchResult run(const CommandOfRank& command, std::chrono::milliseconds limit);

  // Exchange a text, once for each name, between the launchers of a job, outside of runs. Throw
  // RanksError if their store is gone.
  void tell(const std::string& name, const std::string& text);
  std::optional<std::string> told(const std::string& name);  // nothing: nobody has yet

 private:
  struct Job;
  std::unique_ptr<Job> job_;
};

}  // namespace rematch
