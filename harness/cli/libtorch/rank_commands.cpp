#include "harness/cli/libtorch/rank_commands.h"

#include <string>

#include "harness/cli/files/output.h"
#include "harness/process/interrupt.h"
#include "harness/ranks/place.h"
#include "harness/run/children/rank_processes.h"

namespace rematch {
namespace {

// Runs `work` in the process that torchrun or srun started for rank 0. Tells the other ranks'
// processes how `work` ended.
ExitCode lead(const RankPlace& place, const WorkOnRanks& work) {
  LeadingCommand commands(place);
  ExitCode code = ExitCode::kToolError;
  try {
    code = work(&commands);
  } catch (const UsageError&) {
    commands.end(static_cast<int>(ExitCode::kUsage));
    throw;
  } catch (const Interrupted& interrupted) {
    commands.end(static_cast<int>(ExitCode::kFirstSignal) + interrupted.signal);
    throw;
  }
  commands.end(static_cast<int>(code));
  return code;
}

// Once rank 0's process is gone, no more points are measured and no report is written.
ExitCode follow(const RankPlace& place) {
  try {
    return static_cast<ExitCode>(follow_rank_0(place));
  } catch (const RanksError& error) {
    return end_with(ExitCode::kSomePointsFailed, error.what());
  }
}

}  // namespace

std::optional<RankPlace> place_among_commands(int world) {
  if (world == 1) return std::nullopt;
  std::optional<RankPlace> place;
  try {
    place = rank_place_from_environment();
  } catch (const RanksError& error) {
    throw UsageError(error.what());
  }
  if (!place || place->world == 1) return std::nullopt;
  if (place->world == world) return place;
  throw UsageError(
      "this is rank " + std::to_string(place->rank) + " of " + std::to_string(place->world) +
      " according to its environment (WORLD_SIZE or SLURM_NTASKS), but --parallel has " +
      std::to_string(world) + " ranks; start " + std::to_string(world) +
      " processes, or start one process without torchrun and srun, so that it starts all ranks "
      "itself");
}

ExitCode work_on_ranks(const std::optional<RankPlace>& place, const WorkOnRanks& work) {
  if (!place) return work(nullptr);
  return place->rank > 0 ? follow(*place) : lead(*place, work);
}

}  // namespace rematch
