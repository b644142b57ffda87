#include "policies/predict/pipeline/step_time.h"

#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// The end of a pass is its own time after the later of two ends: that of the stage's pass before
// it, and that of the pass that makes its input. Follows these two edges backwards from every pass.
class LongestPath {
 public:
  LongestPath(const PipelineShape& shape, const std::vector<StageTime>& stages, nanoseconds passing)
      : shape_(shape), stages_(stages), passing_(passing) {}

  nanoseconds step() {
    nanoseconds longest{};
    for (std::int64_t stage = 0; stage < shape_.num_stages; ++stage) {
      const StagePass last = stage_passes(shape_, stage).back();
      longest = std::max(longest, end_of(stage, last) + at(stage).optimizer);
    }
    return longest;
  }

 private:
  const StageTime& at(std::int64_t stage) const { return stages_[static_cast<std::size_t>(stage)]; }

  nanoseconds end_of(std::int64_t stage, const StagePass& pass) {
    const bool is_forward = pass.kind == StagePass::Kind::kForward;
    const auto key = std::make_tuple(stage, is_forward, pass.micro_batch);
    if (const auto known = ends_.find(key); known != ends_.end()) return known->second;
    nanoseconds begin{};
    const std::vector<StagePass> passes = stage_passes(shape_, stage);
    for (std::size_t index = 1; index < passes.size(); ++index) {
      if (passes[index] == pass) begin = end_of(stage, passes[index - 1]);
    }
    const std::int64_t sender = is_forward ? stage - 1 : stage + 1;
    if (sender >= 0 && sender < shape_.num_stages) {
      begin = std::max(begin, end_of(sender, pass) + passing_);
    }
    return ends_[key] = begin + (is_forward ? at(stage).forward : at(stage).backward);
  }

  PipelineShape shape_;
  const std::vector<StageTime>& stages_;
  nanoseconds passing_;
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, nanoseconds> ends_;
};

// Each stage is busy for 8 x (1 + 2) and waits for 3 x (1 + 2).
TEST_CASE("equal stages wait for as many micro-batches as there are other stages") {
  const std::vector<StageTime> stages(4, {nanoseconds(1), nanoseconds(2), {}});
  const PipelineTime time = pipeline_time({4, 8}, stages, {});
  CHECK(time.step == nanoseconds(33));
  CHECK(time.bubble_ratio == Approx(3.0 / 11));
}

TEST_CASE("one stage never waits") {
  const std::vector<StageTime> stages = {{nanoseconds(5), nanoseconds(7), nanoseconds(11)}};
  const PipelineTime time = pipeline_time({1, 3}, stages, nanoseconds(100));
  CHECK(time.step == nanoseconds(3 * 12 + 11));
  CHECK(time.bubble_ratio == 0);
}

TEST_CASE("the time of a pipeline is its longest path of passes", "[property]") {
  std::mt19937 random(7);
  for (int round = 0; round < static_cast<int>(testing::num_seeds(200)); ++round) {
    const auto draw = [&](int most) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
    };
    const PipelineShape shape{1 + draw(5), 1 + draw(8)};
    std::vector<StageTime> stages;
    for (std::int64_t stage = 0; stage < shape.num_stages; ++stage) {
      stages.push_back({nanoseconds(draw(20)), nanoseconds(draw(20)), nanoseconds(draw(5))});
    }
    const nanoseconds passing(draw(4));
    CAPTURE(round, shape.num_stages, shape.micro_batches);
    CHECK(pipeline_time(shape, stages, passing).step == LongestPath(shape, stages, passing).step());
  }
}

TEST_CASE("times of another number of stages are rejected") {
  CHECK_THROWS_WITH(pipeline_time({2, 1}, {StageTime{}}, {}), "there are times of 1 stages for 2");
}

}  // namespace
}  // namespace rematch
