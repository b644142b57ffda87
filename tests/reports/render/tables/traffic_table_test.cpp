#include "reports/render/tables/prediction_table.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kWidth = 100;

PredictedStep step_of(const char* policy, std::int64_t gathers_again) {
  PredictedStep step;
  step.policy = policy;
  step.has_regions = true;
  const Bytes each{std::int64_t{1} << 30};
  const auto in = [&](Phase phase) -> auto& { return step.traffic[static_cast<int>(phase)]; };
  in(Phase::kForward)[CollectiveKind::kAllGather] = {33, each};
  if (gathers_again > 0) {
    in(Phase::kRecompute)[CollectiveKind::kAllGather] = {gathers_again, each};
  }
  in(Phase::kBackward)[CollectiveKind::kReduceScatter] = {33, each};
  in(Phase::kOptimizer)[CollectiveKind::kReduceScatter] = {1, each};
  return step;
}

TEST_CASE("predicted collectives are counted by phase, with all bytes that a rank sends") {
  const std::string text =
      traffic_to_text({step_of("none", 0), step_of("full", 32)}, nullptr, kWidth);
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("33/0/0") && Catch::Contains("33/32/0") &&
                       Catch::Contains("0/0/34") && Catch::Contains("3.00 GiB") &&
                       Catch::Contains("4.00 GiB"));
  CHECK_THAT(text, !Catch::Contains("overlap") && !Catch::Contains("all_reduce"));
  CHECK(traffic_to_text({PredictedStep{}}, nullptr, kWidth).empty());
}

TEST_CASE("the table shows the bounds of the step time if op times are known") {
  PredictedStep step = step_of("full", 32);
  step.range = StepRange{milliseconds(800), milliseconds(130)};
  Profile profile;
  profile.device = "h100";
  profile.source = ProfileSource::kRoofline;
  const std::string text = traffic_to_text({step}, &profile, kWidth);
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("930 ms") && Catch::Contains("800 ms") &&
                       Catch::Contains("130 ms") && Catch::Contains("h100's data sheet"));
  profile.links = "cpu.links.json: tp=2, measured on cpu over gloo";
  CHECK_THAT(traffic_to_text({step}, &profile, kWidth), Catch::Contains("cpu.links.json"));
  profile.links.clear();
  profile.source = ProfileSource::kMeasured;
  step.traffic = {};
  const std::string alone = traffic_to_text({step}, &profile, kWidth);
  CHECK_THAT(alone, Catch::Contains("measured on h100") && !Catch::Contains("sent"));
}

}  // namespace
}  // namespace rematch
