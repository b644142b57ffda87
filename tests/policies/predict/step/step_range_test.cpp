#include "policies/predict/step/step_range.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

struct Task {
  bool is_communication = false;
  std::int64_t time = 0;
};

// The tasks of a step: gather block 1, run it, gather block 2, run it, run backward, scatter
// gradients, run the optimizer.
constexpr std::array<Task, 7> kTasks = {
    {{true, 4}, {false, 10}, {true, 4}, {false, 10}, {false, 20}, {true, 6}, {false, 1}}};

// Returns the time of the tasks on two queues, one for compute and one for communication. Each bit
// of `waiting` makes a task wait until all tasks before it have ended.
std::int64_t time_of(std::uint32_t waiting) {
  std::array<std::int64_t, 2> free{};
  for (std::size_t index = 0; index < kTasks.size(); ++index) {
    std::int64_t& queue = free[kTasks[index].is_communication ? 1 : 0];
    const bool waits = (waiting >> index & 1U) != 0;
    queue = (waits ? std::max(free[0], free[1]) : queue) + kTasks[index].time;
  }
  return std::max(free[0], free[1]);
}

TEST_CASE("for any overlap of communication with compute, the step time is within the range") {
  StepRange range;
  for (const Task& task : kTasks) {
    (task.is_communication ? range.communication : range.compute) += Duration(task.time);
  }
  REQUIRE(range == StepRange{Duration(41), Duration(14)});
  for (std::uint32_t waiting = 0; waiting < 1U << kTasks.size(); ++waiting) {
    CAPTURE(waiting);
    CHECK(time_of(waiting) >= range.all_overlaps().count());
    CHECK(time_of(waiting) <= range.nothing_overlaps().count());
  }
  CHECK(time_of(0) == range.all_overlaps().count());
  CHECK(time_of((1U << kTasks.size()) - 1) == range.nothing_overlaps().count());
}

TEST_CASE(
    "a step with more communication than compute takes at least as long as its communication") {
  const StepTime time{.forward = Duration(30),
                      .recompute = Duration(10),
                      .backward = Duration(50),
                      .optimizer = Duration(10),
                      .communication = Duration(70)};
  const StepRange range = step_range(time);
  CHECK(range == StepRange{Duration(30), Duration(70)});
  CHECK(range.all_overlaps() == Duration(70));
  CHECK(range.nothing_overlaps() == Duration(100));
}

}  // namespace
}  // namespace rematch
