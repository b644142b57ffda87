#include "policies/predict/pipeline/rank_holds.h"

#include <vector>

#include "tests/support/catch.h"

namespace rematch {
namespace {

StageHolds stage_of(std::int64_t parameters, std::int64_t gradients, std::int64_t in_flight) {
  StageHolds holds;
  holds.standing[Holder::kParameters] = Bytes{parameters};
  holds.gradients = Bytes{gradients};
  holds.in_flight = Bytes{in_flight};
  return holds;
}

// Rank 0 runs F0 F1 F1.0 F1.1 F2 B1.0 F3 B1.1 F1.2 B0 F1.3 B1 B1.2 B1.3 B2 B3, where F1.2 is
// forward of micro-batch 2 in the rank's second stage.
TEST_CASE("a pass finds the micro-batches and gradients of all stages of its rank") {
  const std::vector<PassMoment> moments = pass_moments({2, 4, 2}, /*rank=*/0);
  const StageHolds first = stage_of(100, 10, 7);
  const StageHolds second = stage_of(1000, 20, 3);
  const HeldByOthers others = held_by_others(moments, {&first, &second}, 0);
  // At F3: three micro-batches of the first stage, one of the second, and the second's gradients.
  CHECK(others.forward.first->total() == Bytes{3 * 7 + 3 + 1000 + 20});
  CHECK_FALSE(others.forward.later.has_value());
  // B0 finds the same. B1 finds two micro-batches of each stage.
  CHECK(others.backward.first->total() == Bytes{3 * 7 + 3 + 1000 + 20});
  CHECK(others.backward.later->total() == Bytes{2 * 7 + 2 * 3 + 1000 + 20});
  CHECK((*others.backward.later)[Holder::kGradients] == Bytes{20});
  CHECK(others.optimizer.total() == Bytes{1000 + 20});
  CHECK_FALSE(others.weights.first.has_value());
}

TEST_CASE("stages whose holds are unknown do not count") {
  const std::vector<PassMoment> moments = pass_moments({2, 4, 2}, /*rank=*/0);
  const StageHolds first = stage_of(100, 10, 7);
  const HeldByOthers others = held_by_others(moments, {&first, nullptr}, 0);
  CHECK(others.backward.first->total() == Bytes{3 * 7});
  CHECK(others.optimizer.total() == Bytes{});
}

// Rank 1 of 3 runs F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3.
TEST_CASE("under ZB-H1 a pass finds what waits for weight passes, and no weight gradients before") {
  const std::vector<PassMoment> moments = pass_moments({3, 4, 1, true}, /*rank=*/1);
  StageHolds holds = stage_of(100, 10, 7);
  holds.for_weights = Bytes{5};
  holds.weight_gradients = Bytes{8};
  const HeldByOthers others = held_by_others(moments, {&holds}, 0);
  CHECK(others.backward.first->total() == Bytes{7});
  // At B2: F3 is in flight, B1 waits, and W0 has made the weight gradients. B1 finds as much, but
  // no weight gradients, although the running stage counts them.
  CHECK(others.backward.later->total() == Bytes{7 + 5});
  // At W0: F2 is in flight, and B1 waits. The weight gradients do not exist.
  CHECK(others.weights.first->total() == Bytes{7 + 5 - 8});
  // At W1: F3 is in flight, and B2 waits.
  CHECK(others.weights.later->total() == Bytes{7 + 5});
}

}  // namespace
}  // namespace rematch
