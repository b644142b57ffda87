// Starts the ranks of a job as child processes, serves the store at which they meet, and reports
// which rank failed first.
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
  std::vector<ChildResult> ranks;  // results of this launcher's ranks, in rank order
  // The rank that failed first or, if the ranks hang, the rank that is furthest behind.
  std::optional<int> culprit;
  std::string message;  // one line such as "rank 2 ended first, signal 9"; empty if no rank failed
};

// A launcher serves any number of runs, one after another.
class Launcher {
 public:
  // Launches all ranks of a job on this machine. Throws RanksError if `world` is less than 1.
  explicit Launcher(int world);
  // Launches one rank of a job whose processes were started from outside: see
  // rank_place_from_environment(). Rank 0's launcher serves the store at the address in `place`,
  // unless torchrun serves it. All launchers of the job must call run() the same number of times.
  // Throws RanksError if the store cannot be served or does not answer within `patience`.
  explicit Launcher(const RankPlace& place,
                    std::chrono::milliseconds patience = std::chrono::minutes(5));
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int world() const;
  const std::vector<int>& ranks() const;  // ranks that this launcher starts

  // Starts one process for each of this launcher's ranks. `command(rank)` returns its argv, which
  // begins with a path. The process learns its rank from rank_place_from_environment(). If a rank
  // fails in any launcher of the job, the other ranks get SIGTERM after a short delay, and SIGKILL
  // within a second. All ranks also get these signals after `limit`, or if an InterruptGuard has
  // seen a signal. Throws std::system_error if a process cannot be started.
  using CommandOfRank = std::function<std::vector<std::string>(int rank)>;
  LaunchResult run(const CommandOfRank& command, std::chrono::milliseconds limit);

  // These two functions send and read texts between the launchers of a job, even while no run is in
  // progress. Each name is used once. Both functions throw RanksError if the store is gone.
  void tell(const std::string& name, const std::string& text);
  std::optional<std::string> told(
      const std::string& name);  // absent if no launcher has sent a text of this name

 private:
  struct Job;
  std::unique_ptr<Job> job_;
};

}  // namespace rematch
