// Tests the parts of a comparison that run no steps: bit equality, time summaries, and why a device
// cannot be used.
#include "harness/run/comparison.h"

#include "harness/run/parity.h"
#include "harness/run/timing/time_summary.h"
#include "harness/training/device.h"
#include "policies/base/rejected.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

StepRecord step(const std::string& bits) {
  StepRecord record;
  record.loss_bits = bits;
  record.gradient_norm_bits = "n" + bits;
  record.parameter_hash = "p" + bits;
  record.generator_hash = "g";
  record.gradient_hashes = {{"a", "a" + bits}, {"b", "b" + bits}};
  return record;
}

PointRecord point(const std::string& policy, const std::vector<std::string>& bits) {
  PointRecord record;
  record.policy = policy;
  for (const std::string& text : bits) record.steps.push_back(step(text));
  return record;
}

TEST_CASE("equal steps have equal bits of loss, gradients, parameters and generator") {
  const ParityRecord parity = compare_steps(point("full", {"1", "2"}), point("none", {"1", "2"}));
  CHECK(parity.reference == "none");
  CHECK(parity.compared_steps == 2);
  CHECK(parity.loss_bits_equal == true);
  CHECK(parity.gradient_bits_equal == true);
  CHECK(parity.parameter_hash_equal == true);
  CHECK(parity.generator_hash_equal == true);
  CHECK_FALSE(parity.first_different_step.has_value());
}

TEST_CASE("the first difference is named by step and tensor") {
  PointRecord wrong = point("full", {"1", "2", "3"});
  wrong.steps[1].gradient_hashes["b"] = "other";
  wrong.steps[2] = step("9");
  const ParityRecord parity = compare_steps(wrong, point("none", {"1", "2", "3"}));
  CHECK(parity.gradient_bits_equal == false);
  CHECK(parity.loss_bits_equal == false);
  CHECK(parity.first_different_step == 1);
  CHECK(parity.first_different_tensor == "b");
}

TEST_CASE("an additional gradient is a difference") {
  PointRecord more = point("full", {"1"});
  more.steps[0].gradient_hashes["c"] = "c";
  CHECK(compare_steps(more, point("none", {"1"})).gradient_bits_equal == false);
}

TEST_CASE("a different generator state counts as a difference even if all else is equal") {
  PointRecord moved = point("full", {"1"});
  moved.steps[0].generator_hash = "h";
  const ParityRecord parity = compare_steps(moved, point("none", {"1"}));
  CHECK(parity.generator_hash_equal == false);
  CHECK(parity.loss_bits_equal == true);
}

TEST_CASE("gradient hashes are kept for two steps if no reference in the report has hashes") {
  const PointRecord none = point("none", {"1", "2", "3"});
  const auto kept = [&](PointRecord record) {
    record.parity = compare_steps(record, none);
    thin_gradient_hashes(record);
    std::vector<std::size_t> sizes;
    for (const StepRecord& each : record.steps) sizes.push_back(each.gradient_hashes.size());
    return sizes;
  };
  CHECK(kept(none) == std::vector<std::size_t>{2, 2, 0});
  CHECK(kept(point("full", {"1", "2", "3"})) == std::vector<std::size_t>{0, 0, 0});
  CHECK(kept(point("full", {"1", "9", "3"})) == std::vector<std::size_t>{2, 2, 0});
  PointRecord alone = point("full", {"1", "2", "3"});
  thin_gradient_hashes(alone);
  CHECK(alone.steps[1].gradient_hashes.size() == 2);
}

TEST_CASE("points without a common step are not compared") {
  const ParityRecord parity = compare_steps(point("full", {}), point("none", {"1"}));
  CHECK(parity.compared_steps == 0);
  CHECK_FALSE(parity.loss_bits_equal.has_value());
}

TimedRound round(const std::vector<int>& milliseconds) {
  TimedRound timed;
  timed.samples.emplace_back();
  for (const int sample : milliseconds) {
    timed.samples.back().push_back(std::chrono::milliseconds(sample));
  }
  timed.phases["forward"] = std::chrono::milliseconds(milliseconds.front());
  return timed;
}

TEST_CASE(
    "a time record keeps every sample and computes its step time from the median of each round") {
  const TimeRecord time = summarize_rounds({round({10, 10, 10}), round({12, 12, 90})});
  CHECK(time.samples.size() == 2);
  CHECK(time.samples[1].size() == 3);
  // The medians of the two rounds are 10 and 12. The stall of 90 affects neither.
  CHECK(time.step_median == std::chrono::milliseconds(11));
  CHECK(time.phases.at("forward") == std::chrono::milliseconds(11));
  CHECK(time.quality.has_value());
}

TEST_CASE("times by class are medians over the rounds") {
  constexpr auto kForward = static_cast<std::size_t>(Phase::kForward);
  std::vector<TimedRound> rounds = {round({10}), round({10}), round({10})};
  for (const int round_index : {0, 1, 2}) {
    rounds[round_index].classes[kForward][OpClass::kMatmul] =
        std::chrono::milliseconds(round_index == 0 ? 90 : 5 + round_index);
  }
  // The class times of the rounds are 90, 6 and 7, so the median is 7. The stall in the first round
  // has no effect.
  const TimeRecord time = summarize_rounds(rounds);
  CHECK(time.classes[kForward].at(OpClass::kMatmul) == std::chrono::milliseconds(7));
  CHECK(time.classes[kForward].size() == 1);
}

TEST_CASE("a ratio is computed within each round, because a slow round slows both arms") {
  const TimeRecord slow = summarize_rounds({round({20, 20}), round({200, 200}), round({22, 22})});
  const TimeRecord fast = summarize_rounds({round({10, 10}), round({100, 100}), round({11, 11})});
  const StepRatioRecord ratio = ratio_to("none", slow, fast, 0.01);
  CHECK(ratio.reference == "none");
  CHECK(ratio.ratio == Catch::Detail::Approx(2.0));
  CHECK(ratio.verdict == "slower");
}

TEST_CASE("if several problems prevent the use of CUDA, only the most basic problem is reported") {
  CHECK_THAT(cuda_obstacle(false, std::nullopt, 0).value(), Catch::Contains("preset cuda"));
  CHECK_THAT(cuda_obstacle(true, std::nullopt, 0).value(), Catch::Contains("no NVIDIA driver"));
  CHECK_THAT(cuda_obstacle(true, "535.104.05", 0).value(), Catch::Contains("535.104.05"));
  CHECK_THAT(cuda_obstacle(true, "580.65.06", 0).value(), Catch::Contains("no device"));
  CHECK_FALSE(cuda_obstacle(true, "580.65.06", 1).has_value());
}

TEST_CASE("a device that the runtime lists is usable, whatever the driver's version") {
  CHECK_FALSE(cuda_obstacle(true, std::nullopt, 1).has_value());
  CHECK_FALSE(cuda_obstacle(true, "535.104.05", 1).has_value());
}

TEST_CASE("the error for a misspelt device suggests a device") {
  const auto device = usable_device("cude");
  REQUIRE(std::holds_alternative<Rejected>(device));
  CHECK_THAT(std::get<Rejected>(device).message, Catch::Contains("did you mean 'cuda'"));
}

}  // namespace
}  // namespace rematch
