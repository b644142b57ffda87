#include "policies/predict/step/counts.h"

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

const Trace& trace() {
  static const Trace toy = testing::toy_llama({.layers = 4});
  return toy;
}

PredictedCounts counts(std::string_view policy, Schedule schedule) {
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace());
  return predict_counts(trace(), std::get<Plan>(plan), schedule);
}

std::int64_t recomputed(std::string_view policy, const std::string& op_class,
                        Schedule schedule = Schedule::kWholeRegion) {
  const auto classes = counts(policy, schedule).classes(Phase::kRecompute);
  const auto found = classes.find(op_class);
  return found == classes.end() ? 0 : found->second;
}

TEST_CASE("no policy changes the op counts of forward and backward") {
  const PredictedCounts none = counts("none", Schedule::kWholeRegion);
  CHECK(none.classes(Phase::kForward).at("attention_forward") == 4);
  // Each block has seven matmuls, and the head has one.
  CHECK(none.ops(Phase::kForward).at("aten::mm") == 4 * 7 + 1);
  CHECK(none.ops(Phase::kRecompute).empty());
  CHECK(none.ops(Phase::kOptimizer).empty());
  const PredictedCounts full = counts("full", Schedule::kOnDemand);
  CHECK(full.by_op[0] == none.by_op[0]);
  CHECK(full.ops(Phase::kBackward) == none.ops(Phase::kBackward));
  CHECK(full.classes(Phase::kBackward) == none.classes(Phase::kBackward));
}

// Early stop omits the last of the seven matmuls in a block.
TEST_CASE("the number of recomputed ops depends on the policy") {
  CHECK(recomputed("full", "attention_forward") == 4);
  CHECK(recomputed("full", "matmul") == 4 * 6);
  CHECK(recomputed("full_nostop", "matmul") == 4 * 7);
  CHECK(recomputed("full_nostop", "matmul", Schedule::kOnDemand) == 4 * 6);
  CHECK(recomputed("nth_first(2)", "attention_forward") == 2);
  CHECK(recomputed("attn_only", "attention_forward") == 0);
  CHECK(recomputed("attn_only", "matmul") == 4 * 6);
  CHECK(recomputed("save_mm", "matmul") == 0);
}

TEST_CASE(
    "under whole_region, policies full and attn_only differ only in the number of attention ops") {
  auto full = counts("full", Schedule::kWholeRegion).classes(Phase::kRecompute);
  auto attention = counts("attn_only", Schedule::kWholeRegion).classes(Phase::kRecompute);
  CHECK(full.erase("attention_forward") == 1);
  CHECK(full == attention);
}

TEST_CASE("a plan for another model is rejected") {
  Plan plan = std::get<Plan>(resolve(std::get<Policy>(parse_policy("full")), trace()));
  CHECK_THROWS_AS(predict_counts(testing::toy_llama({.layers = 3}), plan, Schedule::kOnDemand),
                  std::invalid_argument);
}

}  // namespace
}  // namespace rematch
