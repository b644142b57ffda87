// Commands on a stored trace, as a user's own model has one: no build needs LibTorch for them.
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/step.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "policies/trace/trace_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

Plan plan_of(const std::string& policy, const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace));
}

// A toy model's trace, and plans for it, in files.
class StoredTrace {
 public:
  StoredTrace() { write_json_file(file, trace_to_json(trace)); }

  std::string plan_file(const std::string& policy) const {
    const std::string path = scratch.file("plan.json");
    write_json_file(path, plan_to_json(plan_of(policy, trace)));
    return path;
  }

  ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 4, .tokens = 64});
  std::string file = scratch.file("trace.json");
};

TEST_CASE("a stored trace is predicted as the simulator does") {
  const StoredTrace stored;
  const Outcome outcome = rematch("predict --trace " + stored.file +
                                  " --policy none,save_mm --schedule both --optimizer none --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json predicted = Json::parse(outcome.out);
  REQUIRE(predicted.size() == 3);  // none has no schedule
  StepSimulator simulator(stored.trace, OptimizerModel::kNothing);
  const Plan save_mm = plan_of("save_mm", stored.trace);
  const auto peak = [&](std::size_t index) {
    return predicted[index]["predicted_memory"]["peak_allocated_bytes"].get<std::int64_t>();
  };
  CHECK(peak(0) == simulator.simulate(Plan{}, Schedule::kWholeRegion).peak_bytes().count);
  CHECK(peak(1) == simulator.simulate(save_mm, Schedule::kWholeRegion).peak_bytes().count);
  CHECK(peak(2) == simulator.simulate(save_mm, Schedule::kOnDemand).peak_bytes().count);
  CHECK(predicted[0]["predicted_ops"]["recompute"].empty());
  CHECK_FALSE(predicted[1]["predicted_ops"]["recompute"].contains("aten::mm"));

  const Outcome table = rematch("predict --trace " + stored.file + " --plan " +
                                stored.plan_file("save_mm") + " --world 2");
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("toy_llama") && Catch::Contains("save_mm") &&
                            Catch::Contains("one of 2 ranks"));
}

TEST_CASE("what a prediction from a trace cannot use is refused in one line") {
  const StoredTrace stored;
  const std::string predict = "predict --trace " + stored.file;
  check_usage_error(predict, "nothing to predict");
  check_usage_error(predict + " --policy full --round-512", "leave out --round-512");
  check_usage_error(predict + " --policy full --optimizer adamv", "did you mean 'adamw'?");
  const std::string other = stored.scratch.file("other.json");
  write_json_file(other, trace_to_json(toy_llama({.layers = 4, .tokens = 32})));
  check_usage_error("predict --trace " + other + " --plan " + stored.plan_file("full"),
                    "another trace");
}

}  // namespace
}  // namespace rematch::testing
