#include "harness/ranks/place.h"

#include <cstdlib>
#include <limits>
#include <string_view>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr const char* kLaunchVariable = "REMATCH_LAUNCH";
constexpr const char* kLocalWorld = "LOCAL_WORLD_SIZE";

struct PlaceVariables {
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* setter;
};
constexpr PlaceVariables kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "torchrun"};
constexpr PlaceVariables kSlurm{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "srun"};

const char* require_variable(const EnvironmentReader& read, const char* name,
                             const PlaceVariables& variables) {
  if (const char* text = read(name)) return text;
  throw RanksError(std::string(variables.rank) + " is set but " + name + " is not: a rank needs " +
                   variables.rank + ", " + variables.world +
                   ", MASTER_ADDR and MASTER_PORT; set them, or unset " + variables.rank +
                   " to start all ranks from here");
}

int read_integer(const char* text, const char* name, int least, int most) {
  const auto value = parse_number<int>(text);
  if (value && *value >= least && *value <= most) return *value;
  throw RanksError(std::string(name) + " is '" + text + "'; a number from " +
                   std::to_string(least) + " to " + std::to_string(most) + " is needed");
}

}  // namespace

std::optional<RankPlace> rank_place_from_environment(const EnvironmentReader& read) {
  const bool has_rank = read(kTorchrun.rank) != nullptr;
  const bool has_meeting_point = read("MASTER_ADDR") != nullptr && read("MASTER_PORT") != nullptr;
  if (!has_rank && (read(kSlurm.rank) == nullptr || !has_meeting_point)) return std::nullopt;
  const PlaceVariables& variables = has_rank ? kTorchrun : kSlurm;
  const auto integer = [&](const char* name, int least, int most) {
    return read_integer(require_variable(read, name, variables), name, least, most);
  };
  RankPlace place;
  place.world = integer(variables.world, 1, std::numeric_limits<int>::max());
  place.rank = integer(variables.rank, 0, place.world - 1);
  if (read(variables.local_rank) != nullptr) {
    place.local_rank = integer(variables.local_rank, 0, place.world - 1);
  }
  place.address = require_variable(read, "MASTER_ADDR", variables);
  place.port = static_cast<std::uint16_t>(
      integer("MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max()));
  if (const char* launch = read(kLaunchVariable)) place.launch = launch;
  if (!has_rank) {
    place.ranks_sharing_cpus = 1;
  } else if (read(kLocalWorld) != nullptr) {
    place.ranks_sharing_cpus = integer(kLocalWorld, 1, place.world);
  }
  return place;
}

std::optional<RankPlace> rank_place_from_environment() {
  return rank_place_from_environment([](const char* name) { return std::getenv(name); });
}

std::vector<std::string> environment_of(const RankPlace& place) {
  return {std::string(kTorchrun.rank) + "=" + std::to_string(place.rank),
          std::string(kTorchrun.world) + "=" + std::to_string(place.world),
          std::string(kTorchrun.local_rank) + "=" + std::to_string(place.local_rank),
          "MASTER_ADDR=" + place.address,
          "MASTER_PORT=" + std::to_string(place.port),
          std::string(kLaunchVariable) + "=" + place.launch};
}

}  // namespace rematch
