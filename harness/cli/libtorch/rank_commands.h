// Runs a command on several ranks. Either one process runs the command alone and starts the ranks,
// or torchrun or srun has started one process of the command for each rank.
#pragma once

#include <functional>
#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/ranks/place.h"

namespace rematch {

class RankProcesses;

// Returns this process's rank if torchrun or srun started one process per rank. Otherwise returns
// nothing, and this process must start all ranks. Throws UsageError if the job has a different
// number of ranks.
std::optional<RankPlace> place_among_commands(int world);

// Runs `work` in rank 0's process, or in the only process. The processes of other ranks return the
// same exit code, or kSomePointsFailed if they lose rank 0's process. `ranks` is null if there is
// only one process.
using WorkOnRanks = std::function<ExitCode(RankProcesses* ranks)>;
ExitCode work_on_ranks(const std::optional<RankPlace>& place, const WorkOnRanks& work);

}  // namespace rematch
