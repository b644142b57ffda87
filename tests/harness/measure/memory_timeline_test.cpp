#include "harness/measure/memory_timeline.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

BoundarySample boundary(Phase phase, int place, std::int64_t parameter, std::int64_t forward,
                        std::int64_t saved, std::int64_t backward = 0) {
  BoundarySample sample;
  sample.phase = phase;
  sample.place = place;
  sample.saved = Bytes{saved};
  sample.memory.by_tag[static_cast<std::size_t>(MemoryTag::kParameter)] = Bytes{parameter};
  sample.memory.by_tag[static_cast<std::size_t>(MemoryTag::kForward)] = Bytes{forward};
  sample.memory.by_tag[static_cast<std::size_t>(MemoryTag::kBackward)] = Bytes{backward};
  sample.memory.total = Bytes{parameter + forward + backward};
  return sample;
}

StepSamples two_blocks() {
  StepSamples samples;
  samples.places = {"", "blocks.0", "blocks.1", "loss"};
  samples.baseline = Bytes{100};
  samples.after_forward = Bytes{150};
  samples.boundaries = {
      boundary(Phase::kForward, 1, 100, 30, 20),
      boundary(Phase::kForward, 2, 100, 60, 40),
      boundary(Phase::kForward, 3, 100, 50, 50),
      boundary(Phase::kBackward, 2, 100, 50, 50, 25),
      boundary(Phase::kBackward, 1, 100, 20, 20, 20),
  };
  return samples;
}

TEST_CASE("the peak is recorded with its phase, its block and its holders") {
  const MemoryRecord record = summarize(two_blocks());
  CHECK(record.peak_allocated == Bytes{175});  // 100 + 50 + 25 bytes, in the backward of block 1
  CHECK(record.peak_phase == Phase::kBackward);
  CHECK(record.peak_scope == "blocks.1");
  CHECK(record.baseline == Bytes{100});
  CHECK(record.after_forward == Bytes{150});
  CHECK(record.holders_at_peak.at(Holder::kParameters) == Bytes{100});
  CHECK(record.holders_at_peak.at(Holder::kSavedActivations) == Bytes{50});
  CHECK(record.holders_at_peak.at(Holder::kOther) == Bytes{25});
  Bytes sum;
  for (const auto& [holder, bytes] : record.holders_at_peak) sum += bytes;
  CHECK(sum == record.peak_allocated);
}

TEST_CASE(
    "the first of several equal peaks counts, and temporaries of forward are not saved "
    "activations") {
  StepSamples samples = two_blocks();
  samples.boundaries[3].memory.total = Bytes{160};
  const MemoryRecord record = summarize(samples);
  CHECK(record.peak_allocated == Bytes{160});
  CHECK(record.peak_phase == Phase::kForward);
  CHECK(record.holders_at_peak.at(Holder::kSavedActivations) == Bytes{40});
  CHECK(record.holders_at_peak.at(Holder::kOther) == Bytes{20});
}

TEST_CASE("each part of the step has its own peak") {
  const std::map<std::string, Bytes> parts = summarize(two_blocks()).peak_by_phase;
  CHECK(parts.at("forward") == Bytes{160});
  CHECK(parts.at("loss") == Bytes{150});
  CHECK(parts.at("backward") == Bytes{175});
  CHECK(parts.at("backward.blocks.1") == Bytes{175});
  CHECK(parts.at("backward.blocks.0") == Bytes{140});
  CHECK(parts.count("recompute") == 0);
}

TEST_CASE("each phase's peak is recorded with its holders, whose bytes sum to the peak") {
  const MemoryRecord record = summarize(two_blocks());
  // The phases are forward, loss and backward. Single blocks are not listed.
  REQUIRE(record.holders_by_phase.size() == 3);
  for (const auto& [phase, holders] : record.holders_by_phase) {
    CAPTURE(phase);
    Bytes sum;
    for (const auto& [holder, bytes] : holders) sum += bytes;
    CHECK(sum == record.peak_by_phase.at(phase));
  }
  const HeldBytes& forward = record.holders_by_phase.at("forward");
  CHECK(forward.at(Holder::kSavedActivations) == Bytes{40});
  CHECK(forward.at(Holder::kOther) == Bytes{20});
  CHECK(record.holders_by_phase.at("loss").at(Holder::kSavedActivations) == Bytes{50});
  CHECK((record.holders_by_phase.at("backward") == record.holders_at_peak));
}

TEST_CASE("frozen parameters are counted separately if the model has any") {
  CHECK_FALSE(summarize(two_blocks()).holders_at_peak.contains(Holder::kFrozenParameters));
  StepSamples samples = two_blocks();
  for (BoundarySample& sample : samples.boundaries) {
    sample.memory.by_tag[static_cast<std::size_t>(MemoryTag::kFrozen)] = Bytes{1000};
    sample.memory.total += Bytes{1000};
  }
  const MemoryRecord record = summarize(samples);
  CHECK(record.holders_at_peak.at(Holder::kFrozenParameters) == Bytes{1000});
  CHECK(record.holders_at_peak.at(Holder::kOther) == Bytes{25});
  REQUIRE(record.timeline.has_value());
  CHECK(record.timeline->bytes.at(Holder::kFrozenParameters).size() == 5);
}

TEST_CASE("a long timeline keeps only the highest op boundary of each interval") {
  StepSamples samples;
  for (int index = 0; index < 2000; ++index) {
    samples.boundaries.push_back(boundary(Phase::kForward, 0, 100, index == 777 ? 9 : 1, 1));
  }
  const MemoryRecord record = summarize(samples);
  REQUIRE(record.timeline.has_value());
  CHECK(record.timeline->op_index.size() == kMaxTimelineSamples);
  const std::vector<std::int64_t>& other = record.timeline->bytes.at(Holder::kOther);
  const auto peak = std::max_element(other.begin(), other.end());
  CHECK(*peak == 8);
  CHECK(record.timeline->op_index[peak - other.begin()] ==
        778);  // number of ops that were executed before the sample
}

TEST_CASE("a step without ops has no peak") {
  CHECK_FALSE(summarize(StepSamples{}).peak_allocated.has_value());
}

}  // namespace
}  // namespace rematch
