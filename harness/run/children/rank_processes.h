// The processes of a point on several ranks: all started from here or, where torchrun or srun
// started this program once for each rank, each by the command of its rank. Knows requests and
// results as texts.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/ranks/launch.h"
#include "harness/ranks/place.h"

namespace rematch {

// The outcome of one request on all ranks.
struct RanksOutcome {
  LaunchResult::End end = LaunchResult::End::kWell;
  std::string message;  // of a bad end: names the rank
  // How that rank's process ended, or any where all are equally far; absent: its command is gone.
  std::optional<ChildResult> culprit;
  std::vector<std::string> results;  // by rank, if all ended well: what each wrote
};

class RankProcesses {
 public:
  virtual ~RankProcesses() = default;
  // Runs the hidden subcommand `point` on every rank, with the same request. The processes are gone
  // when it returns. Throws std::system_error if one cannot be started here.
  virtual RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) = 0;
};

// All ranks, on this machine.
class SpawnedRanks final : public RankProcesses {
 public:
  explicit SpawnedRanks(int world) : launcher_(world) {}
  RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) override;

 private:
  Launcher launcher_;
};

// Rank 0's command among the commands of a job: it decides what is measured and in which order, and
// hands each request to the others, who follow_rank_0(). Where another command or the store is gone
// each later request fails at once.
class LeadingCommand final : public RankProcesses {
 public:
  // Throws RanksError if the store that the commands meet at cannot be served.
  explicit LeadingCommand(const RankPlace& place);
  ~LeadingCommand() override;  // as end(), as if this command had failed

  RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) override;
  // The others end with this exit code. Once; when it returns they know, or are gone.
  void end(int exit_code);

 private:
  RanksOutcome run_on_all(const std::string& request, std::chrono::milliseconds limit);
  RanksOutcome lost(const std::string& why);
  std::optional<int> wait_for_others(const std::string& prefix, std::chrono::milliseconds patience);

  Launcher launcher_;
  int num_requests_ = 0;
  std::string why_lost_;  // empty: all others are there
  bool has_ended_ = false;
};

// A command of another rank: starts its rank's process for each request of rank 0's command, until
// that one ends, and returns the exit code to end with. Throws RanksError if rank 0's command is
// gone, Interrupted after a signal.
int follow_rank_0(const RankPlace& place);

}  // namespace rematch
