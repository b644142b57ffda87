// Runs a test on several real ranks. Each rank is a process of this test binary that runs one
// hidden test case. If a check fails in one of these processes, failure_of_ranks() returns a
// message.
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

// ten times as long as the slowest run on any machine so far
inline constexpr std::chrono::minutes kLongForRanks{5};

// Runs hidden test cases on `world` ranks: the test case with this name, or all test cases with
// this tag. The name must not contain commas or brackets. Returns an empty string if all ranks
// pass. Otherwise returns the launcher's message and the end of each rank's output.
std::string failure_of_ranks(int world, const std::string& test_cases,
                             std::chrono::milliseconds limit = kLongForRanks);

// Like failure_of_ranks(), but returns the launcher's result. For tests of failures.
LaunchResult launch_test_case(int world, const std::string& test_case,
                              std::chrono::milliseconds limit = kLongForRanks);
// Returns the argv of one rank's process.
std::vector<std::string> command_of_test_case(const std::string& test_case);

// Returns this process as a rank with one LibTorch thread. Only for hidden test cases. Throws
// RanksError if the process was not launched as a rank.
Ranks this_rank(const std::vector<RankGroup>& groups,
                RanksOptions::Transport transport = RanksOptions::Transport::kQuietGloo);
// Returns this process's position among the ranks. A test can use it to choose the rank groups.
RankPlace this_place();
// Returns the group of all ranks of this job, in order.
RankGroup group_of_all(const std::string& name);

}  // namespace rematch::testing
