// Makes profiles from made-up device activity.
#include "harness/profile/step_ops.h"

#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

// Recorded steps without checkpointing, in which each op launches a kernel.
class RecordedSteps {
 public:
  explicit RecordedSteps(const Trace& trace) : trace_(trace) {}

  // Adds a step. Its forward ops launch kernels of `duration`, and its backward ops kernels of
  // twice that. An op of the optimizer follows.
  void add_step(std::int64_t duration) {
    const int step = num_steps++;
    for (const std::string* name : forward_names(trace_)) {
      add_call(*name, Phase::kForward, step, duration);
    }
    for (const std::string* name : backward_names(trace_)) {
      add_call(*name, Phase::kBackward, step, 2 * duration);
    }
    add_call("aten::_fused_adamw_", Phase::kOptimizer, step, 1000);
  }
  void launch(std::size_t call, std::int64_t duration) {
    ++correlation_;
    activity.links.push_back({correlation_, call + 1});
    activity.kernels.push_back(
        {"reduce_kernel", Duration(clock_), Duration(clock_ + duration), correlation_});
    clock_ += duration + 1;
  }
  std::vector<TimedSteps::Ops> times() const {
    return times_of_steps(activity, calls, trace_, num_steps);
  }

  Activity activity;
  std::vector<OpCall> calls;
  int num_steps = 0;

 private:
  void add_call(const std::string& op, Phase phase, int step, std::int64_t duration) {
    calls.push_back({op, OpClass::kOther, phase, "blocks.0", step});
    launch(calls.size() - 1, duration);
  }

  const Trace& trace_;
  std::uint32_t correlation_ = 100;
  std::int64_t clock_ = 1000;
};

// Kernels take 5, 900 and 7 in three steps, so the median is 7. In backward they take twice as
// long.
TEST_CASE("device activity of several steps becomes a profile's op times") {
  const Trace trace = testing::toy_llama({.layers = 2});
  RecordedSteps recorded(trace);
  for (const std::int64_t duration : {5, 900, 7}) recorded.add_step(duration);
  TimedSteps steps;
  steps.watched = recorded.times();
  steps.forward = steps.backward = steps.optimizer = {Duration(1'000'000)};
  const Profile profile = measured_profile(trace, "cuda", steps);
  CHECK(profile.num_steps == 3);
  CHECK(profile.forward == std::vector<Duration>(trace.ops.size(), Duration(7)));
  CHECK(profile.backward == std::vector<Duration>(backward_names(trace).size(), Duration(14)));
  CHECK(profile.forward_kernels == std::vector<std::int32_t>(trace.ops.size(), 1));
}

TEST_CASE(
    "an op's time includes all its kernels and transfers, and is absent if the op has no kernel "
    "and no transfer") {
  const Trace trace = testing::toy_llama({.layers = 2});
  RecordedSteps recorded(trace);
  recorded.add_step(10);
  recorded.launch(/*call=*/3, 25);
  recorded.activity.transfers.push_back(
      {Duration(90'000), Duration(90'004), recorded.activity.links[3].correlation});
  recorded.activity.kernels.erase(recorded.activity.kernels.begin());
  const std::vector<TimedSteps::Ops> steps = recorded.times();
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].forward[0] == Duration(0));
  CHECK(steps[0].forward[1] == Duration(10));
  CHECK(steps[0].forward[3] == Duration(10 + 25 + 4));
  CHECK(std::vector(steps[0].kernels.begin(), steps[0].kernels.begin() + 4) ==
        std::vector<std::int32_t>{0, 1, 1, 2});
}

TEST_CASE("lost records and unattributed kernels are refused") {
  const Trace trace = testing::toy_llama({.layers = 2});
  RecordedSteps recorded(trace);
  recorded.add_step(10);
  recorded.activity.dropped = 2;
  CHECK_THROWS_WITH(recorded.times(), Catch::Contains("2 activity records were dropped"));
  recorded.activity.dropped = 0;
  recorded.launch(/*call=*/recorded.calls.size(), 5);
  CHECK_THROWS_WITH(recorded.times(), Catch::Contains("not launched by an op"));
}

TEST_CASE("a step that differs from the trace is refused, and the error names the op") {
  const Trace trace = testing::toy_llama({.layers = 2});
  RecordedSteps recorded(trace);
  recorded.add_step(10);
  recorded.calls[2].op = "aten::nonzero";
  CHECK_THROWS_WITH(recorded.times(),
                    Catch::Contains("op 2 of forward is aten::nonzero on the GPU and " +
                                    trace.ops.at(2).name + " in the model's trace"));
  recorded.calls[2].op = trace.ops.at(2).name;
  recorded.calls.pop_back();  // removes the optimizer's op, which the trace lacks anyway
  recorded.activity.kernels.pop_back();
  CHECK_NOTHROW(recorded.times());
  recorded.calls.pop_back();
  recorded.activity.kernels.pop_back();
  CHECK_THROWS_WITH(recorded.times(), Catch::Contains("of backward is missing on the GPU and " +
                                                      *backward_names(trace).back()));
}

}  // namespace
}  // namespace rematch
