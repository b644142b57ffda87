// What is held against the prediction, on made-up points of two steps.
#include "harness/run/predicted_point.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr int kNumSteps = 2;
constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);

// Three mm a step in recompute, which the engine is to repeat exactly.
Variant variant_of_three() {
  Variant variant;
  variant.predicted_counts.by_op[kRecompute] = {{"aten::mm", 3}};
  variant.predicted_counts.by_class[kRecompute] = {{OpClass::kMatmul, 3}};
  return variant;
}

PointRecord counted(std::map<std::string, std::int64_t> recompute) {
  PointRecord point;
  point.effect.emplace();
  point.counts.emplace();
  point.counts->by_op[kRecompute] = std::move(recompute);
  return point;
}

TEST_CASE("counts of all steps equal the prediction's exactly, or the point is invalid") {
  PointRecord equal = counted({{"aten::mm", 6}});
  check_counts(variant_of_three(), kNumSteps, equal);
  CHECK(equal.status == PointStatus::kOk);
  CHECK(equal.effect->counts_equal_prediction == true);

  PointRecord more = counted({{"aten::mm", 7}});
  check_counts(variant_of_three(), kNumSteps, more);
  CHECK(more.status == PointStatus::kInvalid);
  CHECK(more.effect->counts_equal_prediction == false);
  CHECK(more.reason ==
        "executed other ops than predicted: aten::mm in recompute: executed 7, predicted 6");

  PointRecord unforeseen = counted({{"aten::add", 1}, {"aten::mm", 6}});
  check_counts(variant_of_three(), kNumSteps, unforeseen);
  CHECK(unforeseen.effect->detail == "aten::add in recompute: executed 1, predicted 0");

  PointRecord missing = counted({});
  check_counts(variant_of_three(), kNumSteps, missing);
  CHECK(missing.effect->detail == "aten::mm in recompute: executed 0, predicted 6");
}

// See Note [One op, two names]: a trace on meta has views where a step has aliases too.
TEST_CASE("an op that runs under its other name is the op that was predicted") {
  Variant variant = variant_of_three();
  variant.predicted_counts.by_op[kRecompute]["aten::view"] = 5;
  PointRecord equal = counted({{"aten::_reshape_alias", 4}, {"aten::mm", 6}, {"aten::view", 6}});
  check_counts(variant, kNumSteps, equal);
  CHECK(equal.status == PointStatus::kOk);
  CHECK(equal.effect->counts_equal_prediction == true);

  PointRecord fewer = counted({{"aten::_reshape_alias", 3}, {"aten::mm", 6}, {"aten::view", 6}});
  check_counts(variant, kNumSteps, fewer);
  CHECK(fewer.effect->detail == "aten::view in recompute: executed 9, predicted 10");
}

TEST_CASE("how a point ended stays, and without counts nothing is claimed") {
  PointRecord ended = counted({{"aten::mm", 5}});
  ended.status = PointStatus::kOom;
  ended.reason = "out of memory";
  check_counts(variant_of_three(), kNumSteps, ended);
  CHECK(ended.status == PointStatus::kOom);
  CHECK(ended.reason == "out of memory");
  CHECK(ended.effect->counts_equal_prediction == false);

  PointRecord uncounted;
  uncounted.effect.emplace();
  check_counts(variant_of_three(), kNumSteps, uncounted);
  CHECK_FALSE(uncounted.effect->counts_equal_prediction.has_value());
}

// Two regions of one type, of whose saves one of 64 bytes is dead.
TEST_CASE("a point gets the counts of all its steps and the dead saves of all regions") {
  Variant variant = variant_of_three();
  PlannedOp dead;
  dead.bytes = Bytes{64};
  dead.dead_save = true;
  PlannedOp alive;
  alive.bytes = Bytes{512};
  variant.plan.types.resize(1);
  variant.plan.types[0].ops = {dead, alive};
  variant.plan.regions.resize(2);
  variant.prediction.memory.peak_allocated = Bytes{4096};
  PointRecord point;
  point.device = "cpu";
  point.memory.emplace();
  add_prediction(variant, kNumSteps, point);
  CHECK(point.predicted_counts.value()[kRecompute].at(OpClass::kMatmul) == 6);
  CHECK(point.memory->dead_save == Bytes{128});
  CHECK(point.memory->predicted_peak_allocated == Bytes{4096});
  CHECK(point.memory->predicted_peak_note.empty());
  point.device = "cuda";
  add_prediction(variant, kNumSteps, point);
  CHECK_FALSE(point.memory->predicted_peak_note.empty());
}

// 3e9 flops in half a second.
TEST_CASE("a step time implies a rate, and without one there is none") {
  Variant variant;
  variant.step_flops = 3'000'000'000;
  PointRecord point;
  point.device = "meta";
  add_flops(variant, {}, point);
  CHECK_FALSE(point.implied_flops_per_second.has_value());
  point.time.emplace().step_median = std::chrono::milliseconds(500);
  add_flops(variant, {}, point);
  CHECK(point.step_flops == 3'000'000'000);
  CHECK(point.implied_flops_per_second.value() == 6e9);
  CHECK_FALSE(point.most_flops_per_second.has_value());
}

}  // namespace
}  // namespace rematch
