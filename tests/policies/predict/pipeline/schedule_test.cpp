#include "policies/predict/pipeline/schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policies/trace/accumulation.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

// Names each pass by kind and micro-batch: "F2". A pass of a rank's second stage is "F1.2", if
// there are `num_ranks` ranks.
std::string in_words(const std::vector<StagePass>& passes, std::int64_t num_ranks = 99) {
  std::string text;
  for (const StagePass& pass : passes) {
    if (!text.empty()) text += ' ';
    constexpr std::string_view kLetters = "FBW";
    text += kLetters.at(static_cast<std::size_t>(pass.kind));
    if (pass.stage >= num_ranks) text += std::to_string(pass.stage / num_ranks) + '.';
    text += std::to_string(pass.micro_batch);
  }
  return text;
}

TEST_CASE("1F1B begins with as many forward passes as there are later stages") {
  CHECK(in_words(rank_passes({3, 4}, 0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(in_words(rank_passes({3, 4}, 1)) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(in_words(rank_passes({3, 4}, 2)) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("a pipeline with fewer micro-batches than stages runs all forward passes first") {
  CHECK(in_words(rank_passes({4, 2}, 0)) == "F0 F1 B0 B1");
  CHECK(in_words(rank_passes({4, 2}, 2)) == "F0 F1 B0 B1");
  CHECK(in_words(rank_passes({4, 2}, 3)) == "F0 B0 F1 B1");
}

// Counts, pass by pass, the micro-batches of each stage whose forward has run and whose last pass
// has not. Checks every moment of the rank's step against these counts.
void check_moments(const PipelineShape& shape, std::int64_t rank) {
  std::set<PassMoment> expected;
  const std::vector<StagePass> passes = rank_passes(shape, rank);
  for (std::size_t now = 0; now < passes.size(); ++now) {
    PassMoment moment{
        passes[now].kind, static_cast<std::size_t>(passes[now].stage / shape.num_ranks), {}};
    for (const std::int64_t stage : shape.stages_of(rank)) {
      HeldByStage held;
      std::array<std::set<std::int64_t>, 3> done;
      for (std::size_t before = 0; before < now; ++before) {
        if (passes[before].stage != stage) continue;
        done.at(static_cast<std::size_t>(passes[before].kind)).insert(passes[before].micro_batch);
      }
      for (const std::int64_t micro_batch : done[0]) {
        if (stage == passes[now].stage && micro_batch == passes[now].micro_batch) continue;
        if (!done[1].contains(micro_batch)) {
          ++held.in_flight;
        } else if (shape.splits_backward && !done[2].contains(micro_batch)) {
          ++held.for_weights;
        }
      }
      held.has_gradients = !done[1].empty();
      held.has_weight_gradients = shape.splits_backward ? !done[2].empty() : held.has_gradients;
      moment.held.push_back(held);
    }
    expected.insert(moment);
  }
  const std::vector<PassMoment> found = pass_moments(shape, rank);
  CHECK(std::set<PassMoment>(found.begin(), found.end()) == expected);
  CHECK(found.size() == expected.size());
}

TEST_CASE("the moments of a rank are what a count of its passes gives") {
  for (std::int64_t ranks = 1; ranks <= 4; ++ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks, rank);
      for (std::int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
        check_moments({ranks, micro_batches}, rank);
        check_moments({ranks, micro_batches, 1, true}, rank);
        if (micro_batches % ranks != 0) continue;
        check_moments({ranks, micro_batches, 2}, rank);
        check_moments({ranks, micro_batches, 3}, rank);
      }
    }
  }
}

TEST_CASE("stage s of p has at most p - s micro-batches in flight") {
  for (std::int64_t stages = 1; stages <= 6; ++stages) {
    for (std::int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        CAPTURE(stages, micro_batches, stage);
        CHECK(most_in_flight({stages, micro_batches}, stage) ==
              std::min(stages - stage, micro_batches));
      }
    }
  }
}

// The order is that of torch 2.15, ScheduleInterleaved1F1B with two ranks, two stages each, and
// four micro-batches.
TEST_CASE("interleaved 1F1B takes as many micro-batches as ranks through one stage after another") {
  CHECK(in_words(rank_passes({2, 4, 2}, 0), 2) ==
        "F0 F1 F1.0 F1.1 F2 B1.0 F3 B1.1 F1.2 B0 F1.3 B1 B1.2 B1.3 B2 B3");
  CHECK(in_words(rank_passes({2, 4, 2}, 1), 2) ==
        "F0 F1 F1.0 B1.0 F1.1 B1.1 F2 B0 F3 B1 F1.2 B1.2 F1.3 B1.3 B2 B3");
}

// The order is that of torch 2.15, ScheduleInterleavedZeroBubble with three ranks, one stage each,
// and four micro-batches.
TEST_CASE("ZB-H1 delays weight passes by the number of the rank") {
  CHECK(in_words(rank_passes({3, 4, 1, true}, 0)) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(in_words(rank_passes({3, 4, 1, true}, 1)) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  CHECK(in_words(rank_passes({3, 4, 1, true}, 2)) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

TEST_CASE("under ZB-H1 every rank holds at most as many micro-batches as there are ranks") {
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks, rank);
      std::int64_t most = 0;
      for (const PassMoment& moment : pass_moments({ranks, 2 * ranks, 1, true}, rank)) {
        most = std::max(most, moment.held.front().in_flight + moment.held.front().for_weights + 1);
      }
      CHECK(most == ranks);
    }
  }
}

TEST_CASE("the shape of a pipeline is in a model's dimensions") {
  const PipelineShape shape = pipeline_shape({{"pp", 4}, {"accumulate", 8}, {"layers", 32}});
  CHECK(shape.num_ranks == 4);
  CHECK(shape.num_stages() == 4);
  CHECK(shape.micro_batches == 8);
  CHECK(pipeline_shape({{"layers", 32}}).num_stages() == 1);
  CHECK(pipeline_shape({{"pp", 4}, {"interleave", 2}}).num_stages() == 8);
  CHECK(pipeline_shape({{"pp", 4}, {"zb", 1}}).splits_backward);
  CHECK(schedule_name(shape) == "1F1B");
  CHECK(schedule_name({4, 8, 2}) == "interleaved 1F1B");
  CHECK(schedule_name({4, 8, 1, true}) == "ZB-H1");
}

}  // namespace
}  // namespace rematch
