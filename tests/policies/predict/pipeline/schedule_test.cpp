#include "policies/predict/pipeline/schedule.h"

#include <algorithm>
#include <string>

#include "policies/trace/accumulation.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

std::string in_words(const std::vector<StagePass>& passes) {
  std::string text;
  for (const StagePass& pass : passes) {
    if (!text.empty()) text += ' ';
    text += pass.kind == StagePass::Kind::kForward ? 'F' : 'B';
    text += std::to_string(pass.micro_batch);
  }
  return text;
}

TEST_CASE("1F1B begins with as many forward passes as there are later stages") {
  CHECK(in_words(stage_passes({3, 4}, 0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(in_words(stage_passes({3, 4}, 1)) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(in_words(stage_passes({3, 4}, 2)) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("a pipeline with fewer micro-batches than stages runs all forward passes first") {
  CHECK(in_words(stage_passes({4, 2}, 0)) == "F0 F1 B0 B1");
  CHECK(in_words(stage_passes({4, 2}, 2)) == "F0 F1 B0 B1");
  CHECK(in_words(stage_passes({4, 2}, 3)) == "F0 B0 F1 B1");
}

TEST_CASE("stage s of p has at most p - s micro-batches in flight") {
  for (std::int64_t stages = 1; stages <= 6; ++stages) {
    for (std::int64_t micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        CAPTURE(stages, micro_batches, stage);
        const InFlight most = in_flight({stages, micro_batches}, stage);
        const std::int64_t others =
            std::max(most.first_forward.value_or(0), most.later_forward.value_or(0));
        CHECK(others + 1 == std::min(stages - stage, micro_batches));
        CHECK(most.first_backward.has_value());
        CHECK(most.later_backward.has_value() == (micro_batches > 1));
        CHECK(most.later_forward.has_value() == (micro_batches > stages - stage));
      }
    }
  }
}

TEST_CASE("the shape of a pipeline is in a model's dimensions") {
  const PipelineShape shape = pipeline_shape({{"pp", 4}, {"accumulate", 8}, {"layers", 32}});
  CHECK(shape.num_stages == 4);
  CHECK(shape.micro_batches == 8);
  CHECK(pipeline_shape({{"layers", 32}}).num_stages == 1);
}

}  // namespace
}  // namespace rematch
