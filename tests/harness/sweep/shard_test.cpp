#include "harness/sweep/shard.h"

#include <map>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using Variables = std::map<std::string, std::string>;

std::variant<std::optional<Shard>, Rejected> slurm(const Variables& variables) {
  return shard_of_slurm([&](const std::string& name) {
    const auto found = variables.find(name.substr(std::string("SLURM_ARRAY_TASK_").size()));
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::optional<Shard> shard_in(const Variables& variables) {
  return std::get<std::optional<Shard>>(slurm(variables));
}

std::string refusal(std::string_view text) {
  const auto shard = parse_shard(text);
  return std::holds_alternative<Rejected>(shard) ? std::get<Rejected>(shard).message : "";
}

TEST_CASE("a shard is an index below a count") {
  CHECK(std::get<Shard>(parse_shard("0/1")) == Shard{0, 1});
  CHECK(std::get<Shard>(parse_shard("7/8")) == Shard{7, 8});
  for (const char* text :
       {"", "/", "1", "8/8", "-1/4", "1/0", "0/0", "1/4x", " 1/4", "1/-4", "0/99999999999"}) {
    CAPTURE(text);
    CHECK_THAT(refusal(text), Catch::Contains(std::string("'") + text + "' is no shard") &&
                                  Catch::Contains("such as 0/4"));
  }
}

TEST_CASE("every point is one shard's, whatever their number") {
  for (int count = 1; count <= 7; ++count) {
    for (std::size_t point = 0; point < 20; ++point) {
      int owners = 0;
      for (int index = 0; index < count; ++index) owners += takes({index, count}, point) ? 1 : 0;
      CHECK(owners == 1);
    }
  }
}

TEST_CASE("a Slurm job array's tasks are shards, wherever their numbers start and step") {
  CHECK(shard_in({}) == std::nullopt);
  CHECK(shard_in({{"ID", "3"}}) == std::nullopt);
  CHECK(shard_in({{"ID", "3"}, {"COUNT", "4"}, {"MIN", "0"}, {"MAX", "3"}}) == Shard{3, 4});
  CHECK(shard_in({{"ID", "1"}, {"COUNT", "4"}, {"MIN", "1"}, {"MAX", "4"}}) == Shard{0, 4});
  CHECK(shard_in({{"ID", "9"}, {"COUNT", "4"}, {"MIN", "3"}, {"MAX", "9"}, {"STEP", "2"}}) ==
        Shard{3, 4});
}

TEST_CASE("a Slurm job array with gaps leaves its shards open") {
  // --array=0,1,5: its second task could be taken for one of three, and the third for none.
  for (const char* id : {"0", "1", "5"}) {
    const auto shard = slurm({{"ID", id}, {"COUNT", "3"}, {"MIN", "0"}, {"MAX", "5"}});
    REQUIRE(std::holds_alternative<Rejected>(shard));
    CHECK_THAT(
        std::get<Rejected>(shard).message,
        Catch::Contains(std::string("task ") + id + " of 3 tasks") && Catch::Contains("--shard"));
  }
  CHECK(std::holds_alternative<Rejected>(slurm({{"ID", "x"}, {"COUNT", "3"}})));
  CHECK(std::holds_alternative<Rejected>(slurm({{"ID", "0"}, {"COUNT", "0"}})));
}

TEST_CASE("shards of one command line write different files") {
  CHECK(file_of_shard("results/mine.json", {2, 8}) == "results/mine.shard-2-of-8.json");
  CHECK(file_of_shard("mine", {0, 2}) == "mine.shard-0-of-2");
  CHECK(file_of_shard("results/mine.json", {0, 1}) == "results/mine.json");
  CHECK(file_of_shard("", {0, 2}).empty());
}

}  // namespace
}  // namespace rematch
