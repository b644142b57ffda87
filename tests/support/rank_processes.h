// A test on several real ranks: each is a process of this test binary that runs one hidden test
// case, whose checks count.
//
//   TEST_CASE("rank: an all_reduce adds", "[.rank]") {
//     const rematch::Ranks ranks = rematch::testing::this_rank({{"tp", {0, 1}}});
//     CHECK(...);
//   }
//   TEST_CASE("an all_reduce adds") { CHECK(failure_of_ranks(2, "rank: an all_reduce adds") == "");
//   }
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/ranks/launch.h"
#include "harness/ranks/ranks.h"

namespace rematch::testing {

// For machines ten times slower than any on which ranks were tried.
inline constexpr std::chrono::minutes kLongForRanks{5};

// Runs the hidden test case of that name, without commas and brackets, or those with that tag, on
// so many ranks. Empty if all passed; else the launcher's line and the end of each rank's output.
std::string failure_of_ranks(int world, const std::string& test_cases,
                             std::chrono::milliseconds limit = kLongForRanks);

// The same for tests of what goes wrong.
LaunchResult launch_test_case(int world, const std::string& test_case,
                              std::chrono::milliseconds limit = kLongForRanks);
// argv of one such rank.
std::vector<std::string> command_of_test_case(const std::string& test_case);

// In the hidden test case: this process as a rank, with one LibTorch thread. Throws RanksError if
// nobody launched it as one.
Ranks this_rank(const std::vector<RankGroup>& groups,
                RanksOptions::Transport transport = RanksOptions::Transport::kQuietGloo);
// The place alone, to decide on groups.
RankPlace this_place();
// All ranks of this job, in order.
RankGroup group_of_all(const std::string& name);

}  // namespace rematch::testing
