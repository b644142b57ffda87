// A command that works on several ranks: alone, or as one of the commands that torchrun or srun
// started, one for each rank.
#pragma once

#include <functional>
#include <optional>

#include "harness/cli/exit_code.h"
#include "harness/ranks/place.h"

namespace rematch {

class RankProcesses;

// The rank of this command where torchrun or srun started one command for each rank. Nothing: this
// command is alone, and starts all ranks itself. A job of one command is no job. Throws UsageError
// where the job has another size.
std::optional<RankPlace> place_among_commands(int world);

// Rank 0's command, or the only one, works, and the others end as it does. `ranks` is null in a
// command that is alone. Without rank 0's command another one ends with kSomePointsFailed.
using WorkOnRanks = std::function<ExitCode(RankProcesses* ranks)>;
ExitCode work_on_ranks(const std::optional<RankPlace>& place, const WorkOnRanks& work);

}  // namespace rematch
