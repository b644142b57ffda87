// Tests how ranks agree with each other, and which errors they report if they do not.
#include "harness/ranks/ranks.h"

#include "tests/support/catch.h"
#include "tests/support/rank_processes.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

TEST_CASE("rank: agreement", "[.rank]") {
  Ranks ranks = this_rank({});
  for (int round = 0; round < 5; ++round) {
    CHECK_NOTHROW(ranks.agree("plan_sha256", "cafe" + std::to_string(round)));
    ranks.barrier("step");
  }
  const std::vector<std::string> values =
      ranks.values_of_all("peak", std::to_string(ranks.rank() * 10));
  CHECK(values == std::vector<std::string>{"0", "10", "20"});
}

TEST_CASE("ranks agree and exchange their values") {
  CHECK(failure_of_ranks(3, "rank: agreement") == "");
}

TEST_CASE("rank: another plan on rank 2", "[.rank]") {
  Ranks ranks = this_rank({});
  std::string refusal;
  try {
    ranks.agree("plan_sha256", ranks.rank() == 2 ? "beef" : "cafe");
  } catch (const RanksError& error) {
    refusal = error.what();
  }
  CHECK(refusal == "ranks differ in plan_sha256: rank 0 has 'cafe', rank 2 has 'beef'");
}

TEST_CASE("if one rank has a different plan, every rank's error names both ranks and both plans") {
  CHECK(failure_of_ranks(4, "rank: another plan on rank 2") == "");
}

TEST_CASE("rank: impossible groups", "[.rank]") {
  const auto refusal_of = [](const RankGroup& group) {
    try {
      const Ranks ranks(this_place(), {group});
    } catch (const RanksError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal_of({"tp", {0, 2}}) == "group 'tp' has rank 2, but ranks are 0 to 1");
  CHECK(refusal_of({"tp", {0, 0}}) == "group 'tp' contains a rank twice");
  CHECK_THAT(refusal_of({"tp", {1 - this_place().rank}}), Contains("is not in group 'tp'"));
}

TEST_CASE("impossible groups are refused before any rank waits") {
  CHECK(failure_of_ranks(2, "rank: impossible groups") == "");
}

}  // namespace
}  // namespace rematch::testing
