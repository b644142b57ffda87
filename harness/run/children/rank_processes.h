// Runs the processes of a point on several ranks. Either this process starts all of them, or
// torchrun or srun starts this program once per rank. These instances are called commands, and each
// command starts the process of its rank. Does not parse requests and results.
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
  std::string message;  // the error, which names the rank that failed
  // How the process of the failed rank ended. If no failed rank is known, how rank 0's process
  // ended. Absent if the failed rank's command is lost.
  std::optional<ChildResult> culprit;
  // The result of each rank, in order of ranks. Empty unless all ranks ended well.
  std::vector<std::string> results;
};

class RankProcesses {
 public:
  virtual ~RankProcesses() = default;
  // Runs the hidden subcommand `point` on every rank, with the same request. Returns after the
  // processes have ended. Throws std::system_error if this process cannot start a child.
  virtual RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) = 0;
};

// Starts all ranks on this machine.
class SpawnedRanks final : public RankProcesses {
 public:
  explicit SpawnedRanks(int world) : launcher_(world) {}
  RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) override;

 private:
  Launcher launcher_;
};

// The command of rank 0 in a job of several commands. Sends each request to the other commands,
// which run follow_rank_0(). If another command or the store is lost, all later requests fail.
class LeadingCommand final : public RankProcesses {
 public:
  // Throws RanksError if the store that connects the commands cannot be served.
  explicit LeadingCommand(const RankPlace& place);
  ~LeadingCommand() override;  // calls end() with an exit code for failure

  RanksOutcome run(const std::string& request, std::chrono::milliseconds limit) override;
  // Tells the other commands to end with this exit code, and waits a short time for their answers.
  // Later calls have no effect.
  void end(int exit_code);

 private:
  RanksOutcome run_on_all(const std::string& request, std::chrono::milliseconds limit);
  RanksOutcome lost(const std::string& why);
  std::optional<int> wait_for_others(const std::string& prefix, std::chrono::milliseconds patience);

  Launcher launcher_;
  int num_requests_ = 0;
  std::string why_lost_;  // why another command is lost; empty if none is lost
  bool has_ended_ = false;
};

// Runs in the command of any rank but 0. Starts this rank's process for each request from rank 0's
// command, until that command sends an exit code. Returns this exit code. Throws RanksError if rank
// 0's command is lost. Throws Interrupted after a signal.
int follow_rank_0(const RankPlace& place);

}  // namespace rematch
