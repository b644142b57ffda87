#include "tests/support/rank_processes.h"

#include <ATen/Parallel.h>

#include <sched.h>

#include <numeric>

#include "harness/process/process.h"

namespace rematch::testing {

std::vector<std::string> command_of_test_case(const std::string& test_case) {
  return {own_executable(), test_case, "--warn", "NoTests", "--out", "/dev/stderr"};
}

LaunchResult launch_test_case(int world, const std::string& test_case,
                              std::chrono::milliseconds limit) {
  Launcher launcher(world);
  return launcher.run([&](int) { return command_of_test_case(test_case); }, limit);
}

std::string failure_of_ranks(int world, const std::string& test_cases,
                             std::chrono::milliseconds limit) {
  const LaunchResult result = launch_test_case(world, test_cases, limit);
  if (result.end == LaunchResult::End::kWell) return {};
  std::string text = result.message;
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    text += "\n--- rank " + std::to_string(rank) + ":\n" + result.ranks[rank].error_tail;
  }
  return text;
}

RankPlace this_place() {
  if (const auto place = rank_place_from_environment()) return *place;
  throw RanksError("this hidden test case runs only on ranks that another test case starts");
}

RankGroup group_of_all(const std::string& name) {
  RankGroup group{name, {}};
  group.ranks.resize(static_cast<std::size_t>(this_place().world));
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

// If a Gloo thread finds its connection locked, it polls epoll_wait until the thread that holds the
// lock runs. Under SCHED_BATCH, the polling thread does not preempt the holder. Polling takes a
// third of the processor time if there are more ranks than cores.
static void schedule_as_batch() {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);  // if this fails, tests only take longer
}

Ranks this_rank(const std::vector<RankGroup>& groups, RanksOptions::Transport transport) {
  at::set_num_threads(1);
  schedule_as_batch();
  RanksOptions options;
  options.transport = transport;
  options.timeout = kLongForRanks;
  // The test cases of one process must not share names in the store.
  static int num_before = 0;
  RankPlace place = this_place();
  place.launch += "." + std::to_string(num_before++);
  return Ranks(place, groups, options);
}

}  // namespace rematch::testing
