#include "harness/ranks/launch_exchange.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

// Returns the states of `count` ranks, all joined and running.
std::vector<RankState> running_ranks(int count) {
  std::vector<RankState> ranks(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    RankState& state = ranks[static_cast<std::size_t>(rank)];
    state.rank = rank;
    state.note = {/*joined=*/true, /*step=*/3, /*calls=*/58, /*lost_others=*/false, std::nullopt};
  }
  return ranks;
}

void end_with_code(RankState& state, milliseconds at, int code) {
  state.ended_at = at;
  state.exit_code = code;
}

TEST_CASE("a rank ended by a signal is blamed even if the launcher saw another rank end first") {
  std::vector<RankState> ranks = running_ranks(4);
  end_with_code(ranks[1], milliseconds(10), 1);
  ranks[2].ended_at = milliseconds(12);
  ranks[2].signal = 9;
  CHECK(blame_of_failure(ranks)->message == "rank 2 ended first, signal 9");
}

TEST_CASE(
    "a rank that failed on its own is blamed, not the ranks that lost contact with it and ended "
    "sooner") {
  std::vector<RankState> ranks = running_ranks(3);
  end_with_code(ranks[0], milliseconds(10), 1);
  ranks[0].note.lost_others = true;
  ranks[0].note.failed_at = milliseconds(5);
  end_with_code(ranks[2], milliseconds(30), 4);
  ranks[2].last_line = "no such file";
  CHECK(blame_of_failure(ranks)->message == "rank 2 ended first, exit code 4: no such file");
}

TEST_CASE("if several ranks failed on their own, the first of them is blamed") {
  std::vector<RankState> ranks = running_ranks(3);
  end_with_code(ranks[0], milliseconds(20), 1);
  ranks[0].note.failed_at = milliseconds(9);
  end_with_code(ranks[1], milliseconds(12), 1);
  CHECK(blame_of_failure(ranks)->rank == 0);
}

TEST_CASE("a failed rank that ends slowly is blamed, not the ranks that ended before it") {
  std::vector<RankState> ranks = running_ranks(2);
  end_with_code(ranks[0], milliseconds(10), 1);
  ranks[0].note.lost_others = true;
  ranks[1].note.failed_at = milliseconds(5);
  ranks[1].last_line = "no more ink";
  CHECK(blame_of_failure(ranks)->message == "rank 1 failed first: no more ink");
}

TEST_CASE("if all ended ranks lost a connection, the running rank is reported as hanging") {
  std::vector<RankState> ranks = running_ranks(3);
  for (const std::size_t lost : {0, 2}) {
    end_with_code(ranks[lost], milliseconds(10), 1);
    ranks[lost].note.lost_others = true;
  }
  ranks[1].note.calls = 57;
  CHECK(blame_of_failure(ranks)->message ==
        "rank 1 is behind: it has begun step 3 and issued 57 collectives, rank 0 has begun step 3 "
        "and issued 58 "
        "collectives");
}

TEST_CASE("ranks that end without an error are not blamed") {
  std::vector<RankState> ranks = running_ranks(2);
  end_with_code(ranks[0], milliseconds(1), 0);
  CHECK_FALSE(blame_of_failure(ranks));
  CHECK_FALSE(blame_of_delay(running_ranks(4)));
}

TEST_CASE("a rank that never joined is behind all other ranks") {
  std::vector<RankState> ranks = running_ranks(3);
  ranks[1].note = {};
  CHECK_THAT(
      blame_of_delay(ranks)->message,
      Catch::StartsWith("rank 1 is behind: it has not joined the other ranks, rank 0 has begun"));
  ranks[2].was_started = false;
  CHECK_THAT(blame_of_delay(ranks)->message,
             Catch::StartsWith("rank 2 is behind: it was never started"));
}

}  // namespace
}  // namespace rematch
