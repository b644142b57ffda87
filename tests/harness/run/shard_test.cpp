#include "harness/run/shard.h"

#include <map>

#include "policies/base/rejected.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using Variables = std::map<std::string, std::string>;

std::variant<Shard, Rejected> slurm(const Variables& variables) {
  return shard_of_slurm([&](const std::string& name) {
    const auto found = variables.find(name.substr(std::string("SLURM_ARRAY_TASK_").size()));
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Shard shard_in(const Variables& variables) { return std::get<Shard>(slurm(variables)); }

// Returns the first words of an error message, such as "task 5's".
std::string of_task(const char* id) {
  std::string text = "task ";
  return text.append(id).append("'s");
}

std::string refusal(std::string_view text) {
  const auto shard = parse_shard(text);
  return std::holds_alternative<Rejected>(shard) ? std::get<Rejected>(shard).message : "";
}

TEST_CASE("a shard consists of an index and a count, and the index is below the count") {
  CHECK(std::get<Shard>(parse_shard("0/1")) == Shard{0, 1});
  CHECK(std::get<Shard>(parse_shard("7/8")) == Shard{7, 8});
  for (const char* text :
       {"", "/", "1", "8/8", "-1/4", "1/0", "0/0", "1/4x", " 1/4", "1/-4", "0/99999999999"}) {
    CAPTURE(text);
    std::string start = "'";
    CHECK_THAT(refusal(text), Catch::StartsWith(start.append(text).append("' is not a shard")) &&
                                  Catch::Contains("such as 0/4"));
  }
}

TEST_CASE("every point belongs to exactly one shard, for any number of shards") {
  for (int count = 1; count <= 7; ++count) {
    for (std::size_t point = 0; point < 20; ++point) {
      int owners = 0;
      for (int index = 0; index < count; ++index) owners += takes({index, count}, point) ? 1 : 0;
      CHECK(owners == 1);
    }
  }
}

TEST_CASE("neighbouring points belong to different shards") {
  for (int count = 2; count <= 7; ++count) {
    for (std::size_t point = 0; point < 20; ++point) {
      const Shard own{static_cast<int>(point) % count, count};
      CHECK(takes(own, point));
      CHECK_FALSE(takes(own, point + 1));
    }
  }
}

std::string slurm_refusal(const Variables& variables) {
  const auto shard = slurm(variables);
  return std::holds_alternative<Rejected>(shard) ? std::get<Rejected>(shard).message : "";
}

TEST_CASE(
    "the tasks of a Slurm job array map to shards, whether its indices start at 0 or 1 and "
    "whatever its step") {
  CHECK(shard_in({{"ID", "3"}, {"COUNT", "4"}, {"MIN", "0"}, {"MAX", "3"}}) == Shard{3, 4});
  CHECK(shard_in({{"ID", "1"}, {"COUNT", "4"}, {"MIN", "1"}, {"MAX", "4"}}) == Shard{0, 4});
  CHECK(shard_in({{"ID", "7"}, {"COUNT", "4"}, {"MIN", "1"}, {"MAX", "7"}, {"STEP", "2"}}) ==
        Shard{3, 4});
}

TEST_CASE("outside of a Slurm job array, a request for the task's shard is refused") {
  CHECK_THAT(slurm_refusal({}), Catch::Contains("SLURM_ARRAY_TASK_ID is not set") &&
                                    Catch::Contains("sbatch --array"));
}

// `sbatch --array=5` may repeat one task of --array=0-15. Slurm's variables are then the same as
// for a job array that has only this task.
TEST_CASE("a single repeated task of a job array is refused, and the error suggests --shard") {
  for (const char* id : {"5", "1", "0"}) {
    CAPTURE(id);
    const std::string line =
        slurm_refusal({{"ID", id}, {"COUNT", "1"}, {"MIN", id}, {"MAX", id}, {"STEP", "1"}});
    CHECK_THAT(line, Catch::StartsWith(of_task(id)) && Catch::Contains("only this task") &&
                         Catch::Contains("--shard INDEX/COUNT") && Catch::Contains("--shard 0/1"));
    CHECK(line.find('\n') == std::string::npos);
  }
}

TEST_CASE("a job array that begins at 3 does not determine its shards") {
  for (const char* id : {"3", "4", "5"}) {
    CHECK_THAT(slurm_refusal({{"ID", id}, {"COUNT", "3"}, {"MIN", "3"}, {"MAX", "5"}}),
               Catch::Contains("begins at 3"));
  }
}

TEST_CASE("a Slurm job array with gaps does not determine its shards") {
  // In --array=0,1,5, the second task could be shard 1 of 3. But the third task has number 5, and
  // there is no shard 5 of 3.
  for (const char* id : {"0", "1", "5"}) {
    CHECK_THAT(slurm_refusal({{"ID", id}, {"COUNT", "3"}, {"MIN", "0"}, {"MAX", "5"}}),
               Catch::Contains(of_task(id)) &&
                   Catch::Contains("of 3 tasks has unevenly spaced task numbers"));
  }
  CHECK(slurm_refusal({{"ID", "4"}, {"COUNT", "3"}, {"MIN", "0"}, {"MAX", "2"}}) != "");
  CHECK(slurm_refusal({{"ID", "1"}, {"COUNT", "3"}, {"MIN", "0"}, {"MAX", "4"}, {"STEP", "2"}}) !=
        "");
}

TEST_CASE("a job array with missing or malformed variables does not determine its shards") {
  const Variables whole = {{"ID", "3"}, {"COUNT", "4"}, {"MIN", "0"}, {"MAX", "3"}};
  CHECK(slurm_refusal(whole).empty());
  for (const char* name : {"COUNT", "MIN", "MAX"}) {
    CAPTURE(name);
    Variables without = whole;
    without.erase(name);
    CHECK_THAT(slurm_refusal(without), Catch::Contains("does not say how its tasks are numbered"));
  }
  for (const auto& [name, value] : whole) {
    Variables wrong = whole;
    wrong[name] = "x";
    CHECK(slurm_refusal(wrong) != "");
  }
  Variables none = whole;
  none["COUNT"] = "0";
  CHECK(slurm_refusal(none) != "");
}

TEST_CASE("shards of one command line write different files") {
  CHECK(file_of_shard("results/mine.json", {2, 8}) == "results/mine.shard-2-of-8.json");
  CHECK(file_of_shard("mine", {0, 2}) == "mine.shard-0-of-2");
  CHECK(file_of_shard("results/mine.json", {0, 1}) == "results/mine.json");
  CHECK(file_of_shard("", {0, 2}).empty());
}

}  // namespace
}  // namespace rematch
