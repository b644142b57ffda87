// Runs a command on several ranks. Either one process runs the command alone and starts the ranks,
// or torchrun or srun has started one process of the command for each rank.
#pragma once

#include <functional>
#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/ranks/place.h"

namespace rematch {

class RankProcesses;

// Returns the rank of this process if torchrun or srun started one process per rank. Absent if this
// process is alone or the only one of a job; it then starts all ranks itself. Throws UsageError if
// the job has a different number of ranks.
std::optional<RankPlace> place_among_commands(int world);

// Runs `work` in rank 0's process, or in the only process. The other ranks' processes end with the
// same exit code. `ranks` is null if there is only one process. If rank 0's process is lost, the
// other processes return kSomePointsFailed.
using WorkOnRanks = std::function<ExitCode(RankProcesses* ranks)>;
ExitCode work_on_ranks(const std::optional<RankPlace>& place, const WorkOnRanks& work);

}  // namespace rematch
