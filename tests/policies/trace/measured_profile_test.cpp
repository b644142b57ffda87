#include "policies/trace/measured_profile.h"

#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

std::size_t num_backward_ops(const Trace& trace) {
  std::size_t count = 0;
  for (const BackwardEvent& event : trace.backward) count += event.kind == BackwardEvent::Kind::kOp;
  return count;
}

// For each of `times`, adds a step in which every forward op is measured to take this time. Also
// adds a step without op timers, in which each phase takes a millisecond.
TimedSteps steps_of(const Trace& trace, std::vector<std::int64_t> times) {
  TimedSteps steps;
  for (const std::int64_t time : times) {
    steps.watched.push_back({std::vector<Duration>(trace.ops.size(), Duration(time)),
                             std::vector<Duration>(num_backward_ops(trace), Duration(2 * time))});
  }
  constexpr Duration kMillisecond(1'000'000);
  steps.forward = steps.backward = steps.optimizer = {kMillisecond};
  return steps;
}

TEST_CASE("profiled times are medians over the steps") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Profile profile = measured_profile(trace, "cpu", steps_of(trace, {5, 900, 7}));
  CHECK(profile.num_steps == 3);
  CHECK(profile.source == ProfileSource::kMeasured);
  CHECK(profile.forward == std::vector<Duration>(trace.ops.size(), Duration(7)));
  CHECK(profile.backward == std::vector<Duration>(num_backward_ops(trace), Duration(14)));
  CHECK_FALSE(profile_problem(profile, trace).has_value());
  // For an even number of times, the median is the mean of the middle two.
  CHECK(measured_profile(trace, "cpu", steps_of(trace, {4, 10})).forward.front() == Duration(7));
}

// All three layers run the same ops. Their first op takes 3, 30 and 5, so the median is 5.
TEST_CASE("a profile gives equal layers equal times") {
  const Trace trace = testing::toy_llama({.layers = 3});
  TimedSteps steps = steps_of(trace, {1});
  const Duration times[] = {Duration(3), Duration(30), Duration(5)};
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const TracedScope& scope = trace.scopes[trace.blocks[layer].scope];
    steps.watched[0].forward[scope.first_op.index] = times[layer];
  }
  const Profile profile = measured_profile(trace, "cpu", steps);
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    CHECK(profile.forward[scope.first_op] == Duration(5));
    CHECK(profile.forward[scope.first_op + 1] == Duration(1));
  }
}

TEST_CASE("the time between ops is measured in steps without op timers") {
  const Trace trace = testing::toy_llama({.layers = 2});
  TimedSteps steps = steps_of(trace, {1000});
  const auto num_ops = static_cast<std::int64_t>(trace.ops.size());
  steps.forward = {Duration(1000 * num_ops + 400)};
  // shorter than the sum of its ops, because each op's time includes the timer's own cost
  steps.backward = {Duration(1)};
  const Profile profile = measured_profile(trace, "cpu", steps);
  CHECK(profile.forward_between_ops == Duration(400));
  CHECK(profile.forward_time() == steps.forward.front());
  CHECK(profile.backward_between_ops == Duration(0));
  CHECK(profile.optimizer == Duration(1'000'000));
}

// In two steps of three equal layers, the first op of a layer allocates 1, 2, ..., 6 bytes of
// workspace. The profile must contain the maximum, 6 bytes.
TEST_CASE("kernel workspace is the maximum over steps and equal layers") {
  const Trace trace = testing::toy_llama({.layers = 3});
  TimedSteps steps = steps_of(trace, {1});
  CHECK_FALSE(measured_profile(trace, "cuda", steps).forward_temporary.has_value());
  steps.weighed.assign(2, {std::vector<Bytes>(trace.ops.size()),
                           std::vector<Bytes>(num_backward_ops(trace), Bytes{9})});
  std::int64_t bytes = 0;
  for (TimedSteps::Temporaries& step : steps.weighed) {
    for (const TracedBlock& block : trace.blocks) {
      const TracedScope& scope = trace.scopes[block.scope];
      step.forward[scope.first_op.index] = Bytes{++bytes};
    }
  }
  const Profile profile = measured_profile(trace, "cuda", steps);
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    CHECK(profile.forward_temporary->at(scope.first_op) == Bytes{6});
    CHECK(profile.forward_temporary->at(scope.first_op + 1) == Bytes{0});
  }
  CHECK(*profile.backward_temporary == std::vector<Bytes>(num_backward_ops(trace), Bytes{9}));
  CHECK_FALSE(profile_problem(profile, trace).has_value());

  steps.weighed.back().backward.pop_back();
  CHECK_THROWS_WITH(measured_profile(trace, "cuda", steps), Catch::Contains("a watched step has"));
}

// A library may launch one kernel or two for the same op. The count of the op is then two.
TEST_CASE("kernel counts are the maximum over steps and equal layers, or absent if not counted") {
  const Trace trace = testing::toy_llama({.layers = 3});
  TimedSteps steps = steps_of(trace, {1, 1});
  CHECK_FALSE(measured_profile(trace, "cuda", steps).forward_kernels.has_value());
  for (TimedSteps::Ops& step : steps.watched) step.kernels.assign(trace.ops.size(), 1);
  const auto op_of = [&](std::size_t layer) {
    const TracedScope& scope = trace.scopes[trace.blocks.at(layer).scope];
    return scope.first_op;
  };
  steps.watched[1].kernels[op_of(1).index] = 2;
  const Profile profile = measured_profile(trace, "cuda", steps);
  CHECK(profile.forward_kernels.value()[op_of(2)] == 2);
  CHECK(profile.forward_kernels.value()[op_of(2) + 1] == 1);

  steps.watched[0].kernels.clear();
  CHECK_THROWS_WITH(measured_profile(trace, "cuda", steps), Catch::Contains("kernel counts for"));
}

TEST_CASE("measured_profile rejects an empty list of steps, and steps of another trace") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Trace other = testing::toy_llama({.layers = 3});
  CHECK_THROWS_AS(measured_profile(trace, "cpu", steps_of(other, {1})), std::invalid_argument);
  CHECK_THROWS_AS(measured_profile(trace, "cpu", TimedSteps{}), std::invalid_argument);
}

}  // namespace
}  // namespace rematch
