// A command that works on several ranks. It runs alone, or as one of the commands that torchrun or
// srun started, one per rank.
#pragma once

#include <functional>
#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/ranks/place.h"

namespace rematch {

class RankProcesses;

// Returns this command's rank if torchrun or srun started one command per rank. Absent if this
// command is alone and starts all ranks itself, also if it is the only command of a job. Throws
// UsageError if the job has another number of ranks.
std::optional<RankPlace> place_among_commands(int world);

// Runs `work` in rank 0's command or in the only command. The other commands end with the same exit
// code. `ranks` is null in a command that is alone. If rank 0's command is lost, the others return
// kSomePointsFailed.
using WorkOnRanks = std::function<ExitCode(RankProcesses* ranks)>;
ExitCode work_on_ranks(const std::optional<RankPlace>& place, const WorkOnRanks& work);

}  // namespace rematch
