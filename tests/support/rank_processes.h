// Runs a test on several real ranks. Each rank is a process of this test binary that runs one
// hidden test case. A check that fails in the hidden test case fails the run.
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

// Long enough for a machine ten times slower than any on which ranks were tried.
inline constexpr std::chrono::minutes kLongForRanks{5};

// Runs the hidden test case of the given name, or all hidden test cases with the given tag, on
// `world` ranks. The name must not contain commas or brackets. Returns an empty string if all ranks
// pass. Otherwise returns the launcher's message and the end of each rank's output.
std::string failure_of_ranks(int world, const std::string& test_cases,
                             std::chrono::milliseconds limit = kLongForRanks);

// Runs the ranks in the same way and returns the launcher's result. Used by tests of failures.
LaunchResult launch_test_case(int world, const std::string& test_case,
                              std::chrono::milliseconds limit = kLongForRanks);
// Returns the argv of one rank of such a run.
std::vector<std::string> command_of_test_case(const std::string& test_case);

// Returns this process as a rank, with one LibTorch thread. Call it in the hidden test case. Throws
// RanksError if the process was not launched as a rank.
Ranks this_rank(const std::vector<RankGroup>& groups,
                RanksOptions::Transport transport = RanksOptions::Transport::kQuietGloo);
// Returns the position of this process among the ranks. A test may need it before it can choose the
// groups.
RankPlace this_place();
// Returns the group of all ranks of this job, in order.
RankGroup group_of_all(const std::string& name);

}  // namespace rematch::testing
