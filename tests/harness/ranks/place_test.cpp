#include "harness/ranks/place.h"

#include <map>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankPlace> place_in(const Variables& variables) {
  return rank_place_from_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"MASTER_ADDR", "node7"},
          {"MASTER_PORT", "29500"}};
}

TEST_CASE("rank, world size and address are read from the variables of torchrun") {
  RankPlace expected{3, 8, 1, "node7", 29500, "", std::nullopt};
  CHECK(place_in(torchrun()) == expected);
  Variables under_slurm = torchrun();
  under_slurm["SLURM_PROCID"] = "5";
  CHECK(place_in(under_slurm) == expected);
  Variables with_local_world = torchrun();
  with_local_world["LOCAL_WORLD_SIZE"] = "4";
  expected.ranks_sharing_cpus = 4;
  CHECK(place_in(with_local_world) == expected);
}

TEST_CASE(
    "rank and world size are read from the variables of srun if MASTER_ADDR and MASTER_PORT are "
    "set") {
  Variables variables{{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  CHECK(place_in(variables) == std::nullopt);
  variables["MASTER_ADDR"] = "node7";
  variables["MASTER_PORT"] = "400";
  CHECK(place_in(variables) == RankPlace{2, 4, 0, "node7", 400, "", 1});
}

TEST_CASE("a process without the launcher's variables is not a rank") {
  CHECK(place_in({}) == std::nullopt);
}

TEST_CASE("a rank reads the variables that the launcher sets") {
  const RankPlace place{1, 2, 1, "127.0.0.1", 4711, "/3", std::nullopt};
  Variables variables;
  for (const std::string& one : environment_of(place)) {
    const std::size_t equals = one.find('=');
    variables[one.substr(0, equals)] = one.substr(equals + 1);
  }
  CHECK(place_in(variables) == place);
}

TEST_CASE("the error for a malformed variable names the variable and its range") {
  const auto refusal_of = [](const std::string& name, const std::optional<std::string>& value) {
    Variables variables = torchrun();
    variables.erase(name);
    if (value) variables[name] = *value;
    try {
      place_in(variables);
    } catch (const RanksError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal_of("RANK", "8") == "RANK is '8'; a number from 0 to 7 is needed");
  CHECK(refusal_of("RANK", "1x") == "RANK is '1x'; a number from 0 to 7 is needed");
  CHECK_THAT(refusal_of("WORLD_SIZE", "0"),
             Catch::StartsWith("WORLD_SIZE is '0'; a number from 1"));
  CHECK(refusal_of("MASTER_PORT", "99999") ==
        "MASTER_PORT is '99999'; a number from 1 to 65535 is needed");
  CHECK_THAT(refusal_of("MASTER_ADDR", std::nullopt),
             Catch::StartsWith("RANK is set but MASTER_ADDR is not"));
}

}  // namespace
}  // namespace rematch
