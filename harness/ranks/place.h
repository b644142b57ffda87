// The rank of this process in a job, and the address at which the job's ranks meet. Standard
// library only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rematch {

struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;                 // rank among the ranks of this machine; selects the GPU
  std::string address = "127.0.0.1";  // address of the store at which the ranks meet
  std::uint16_t port = 0;
  std::string launch;  // identifies this launch among launches that share a store
  // How many ranks share this machine's CPUs. Absent if the environment does not say.
  std::optional<int> ranks_sharing_cpus;

  bool operator==(const RankPlace&) const = default;
};

// Returns null if the variable is not set.
using EnvironmentReader = std::function<const char*(const char* name)>;

// Reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as torchrun sets them. Without
// RANK, reads SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID, as srun sets them. A Slurm task counts
// as a rank only if MASTER_ADDR and MASTER_PORT are also set. LOCAL_WORLD_SIZE gives the number of
// ranks that share the machine's CPUs; srun gives each rank its own CPUs. Returns nothing if this
// process is not a rank. Throws RanksError, which names the variable, its value and its range.
std::optional<RankPlace> rank_place_from_environment(const EnvironmentReader& read);
std::optional<RankPlace> rank_place_from_environment();  // reads this process's environment

// Returns the variables that rank_place_from_environment() reads, as "NAME=value".
std::vector<std::string> environment_of(const RankPlace& place);

// An error of a job of several ranks, as one line that names the rank.
struct RanksError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rematch
