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

// The end of a pass is its own time after the later of two ends: that of the rank's pass before
// it, and that of the pass that makes its input. Follows these two edges backwards from every pass.
class LongestPath {
 public:
  LongestPath(const PipelineShape& shape, const std::vector<StageTime>& stages, nanoseconds passing)
      : shape_(shape), stages_(stages), passing_(passing) {}

  nanoseconds step() {
    nanoseconds longest{};
    for (std::int64_t rank = 0; rank < shape_.num_ranks; ++rank) {
      nanoseconds optimizer{};
      for (std::int64_t stage = rank; stage < shape_.num_stages(); stage += shape_.num_ranks) {
        optimizer += at(stage).optimizer;
      }
      longest = std::max(longest, end_of(rank_passes(shape_, rank).back()) + optimizer);
    }
    return longest;
  }

 private:
  const StageTime& at(std::int64_t stage) const { return stages_[static_cast<std::size_t>(stage)]; }

  nanoseconds time_of(const StagePass& pass) const {
    if (pass.kind == StagePass::Kind::kForward) return at(pass.stage).forward;
    return pass.kind == StagePass::Kind::kBackward ? at(pass.stage).backward
                                                   : at(pass.stage).weights;
  }

  nanoseconds end_of(const StagePass& pass) {
    const auto key = std::make_tuple(pass.stage, pass.kind, pass.micro_batch);
    if (const auto known = ends_.find(key); known != ends_.end()) return known->second;
    nanoseconds begin{};
    const std::vector<StagePass> passes = rank_passes(shape_, pass.stage % shape_.num_ranks);
    for (std::size_t index = 1; index < passes.size(); ++index) {
      if (passes[index] == pass) begin = end_of(passes[index - 1]);
    }
    StagePass sender = pass;
    if (pass.kind == StagePass::Kind::kForward) --sender.stage;
    if (pass.kind == StagePass::Kind::kBackward) ++sender.stage;
    if (sender.stage != pass.stage && sender.stage >= 0 && sender.stage < shape_.num_stages()) {
      begin = std::max(begin, end_of(sender) + passing_);
    }
    return ends_[key] = begin + time_of(pass);
  }

  PipelineShape shape_;
  const std::vector<StageTime>& stages_;
  nanoseconds passing_;
  std::map<std::tuple<std::int64_t, StagePass::Kind, std::int64_t>, nanoseconds> ends_;
};

// Each stage is busy for 8 x (1 + 2) and waits for 3 x (1 + 2).
TEST_CASE("equal stages wait for as many micro-batches as there are other stages") {
  const std::vector<StageTime> stages(4, {nanoseconds(1), nanoseconds(2), {}});
  const PipelineTime time = pipeline_time({4, 8}, stages, {});
  CHECK(time.step == nanoseconds(33));
  CHECK(time.bubble_ratio == Approx(3.0 / 11));
}

// Source of the formula: Narayanan et al. 2021, section 2.2.
TEST_CASE("interleaved stages wait v times less than stages without interleaving") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    for (const std::int64_t each : {2, 3}) {
      for (const std::int64_t rounds : {2, 3}) {
        CAPTURE(ranks, each, rounds);
        const PipelineShape shape{ranks, ranks * rounds, each};
        const std::vector<StageTime> stages(static_cast<std::size_t>(ranks * each),
                                            {nanoseconds(10), nanoseconds(20), {}});
        const PipelineTime time = pipeline_time(shape, stages, {});
        const std::int64_t busy = shape.micro_batches * each * 30;
        CHECK(time.step == nanoseconds(busy + (ranks - 1) * 30));
        // The share of the busy time is (p - 1) / (v m).
        CHECK(static_cast<double>(time.step.count()) / static_cast<double>(busy) - 1 ==
              Approx(static_cast<double>(ranks - 1) /
                     static_cast<double>(each * shape.micro_batches)));
      }
    }
  }
}

// Source of the formula: Qi et al. 2024, table 2. It holds if weights take no longer than forward.
TEST_CASE("under ZB-H1 a rank waits for forward plus backward less weights of each other rank") {
  for (const std::int64_t ranks : {2, 3, 4, 6}) {
    for (const std::int64_t micro_batches : {ranks, 2 * ranks, 3 * ranks}) {
      for (const auto& [forward, backward, weights] :
           {std::tuple{1, 1, 1}, {2, 2, 1}, {10, 11, 9}, {3, 4, 2}}) {
        CAPTURE(ranks, micro_batches, forward, backward, weights);
        const StageTime stage{
            nanoseconds(forward), nanoseconds(backward), {}, nanoseconds(weights)};
        const PipelineTime time =
            pipeline_time({ranks, micro_batches, 1, true},
                          std::vector<StageTime>(static_cast<std::size_t>(ranks), stage), {});
        CHECK(time.step == nanoseconds(micro_batches * (forward + backward + weights) +
                                       (ranks - 1) * (forward + backward - weights)));
      }
    }
  }
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
    PipelineShape shape{1 + draw(5), 1 + draw(8)};
    if (round % 3 == 1) shape.splits_backward = true;
    if (round % 3 == 2) {
      shape.stages_per_rank = 2 + draw(2);
      shape.micro_batches = shape.num_ranks * (1 + draw(3));
    }
    std::vector<StageTime> stages;
    for (std::int64_t stage = 0; stage < shape.num_stages(); ++stage) {
      stages.push_back({nanoseconds(draw(20)), nanoseconds(draw(20)), nanoseconds(draw(5)),
                        nanoseconds(shape.splits_backward ? draw(20) : 0)});
    }
    const nanoseconds passing(draw(4));
    CAPTURE(round, shape.num_ranks, shape.micro_batches, shape.stages_per_rank);
    CHECK(pipeline_time(shape, stages, passing).step == LongestPath(shape, stages, passing).step());
  }
}

TEST_CASE("times of another number of stages are rejected") {
  CHECK_THROWS_WITH(pipeline_time({2, 1}, {StageTime{}}, {}), "there are times of 1 stages for 2");
}

}  // namespace
}  // namespace rematch
