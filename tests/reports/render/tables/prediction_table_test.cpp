// Tests the output of rematch predict, for synthetic steps.
#include "reports/render/tables/prediction_table.h"

#include "tests/support/catch.h"
#include "tests/support/single_spaces.h"

namespace rematch {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::size_t kWidth = 100;

PredictedStep step_of(std::int64_t peak_gib) {
  PredictedStep step;
  step.policy = "full";
  step.has_regions = true;
  step.memory.peak_allocated = Bytes{peak_gib * kGiB};
  step.memory.after_forward = Bytes{2 * kGiB};
  step.memory.peak_phase = Phase::kOptimizer;
  step.memory.holders_at_peak = {{Holder::kParameters, Bytes{peak_gib * kGiB}}};
  step.counts.by_class[static_cast<int>(Phase::kForward)] = {{OpClass::kAttentionForward, 32},
                                                             {OpClass::kMatmul, 225}};
  step.counts.by_class[static_cast<int>(Phase::kRecompute)] = {{OpClass::kAttentionForward, 31}};
  return step;
}

TEST_CASE("predictions are printed as a table that fits a screen, below a line with the settings") {
  PredictedStep none = step_of(9);
  none.policy = "none";
  none.has_regions = false;
  none.counts.by_class[static_cast<int>(Phase::kRecompute)].clear();
  const std::string text = predictions_to_text("llama3_8b, AdamW", {none, step_of(3)}, kWidth);
  CAPTURE(text);
  CHECK(text.starts_with("llama3_8b, AdamW\n"));
  CHECK_THAT(text, Catch::Contains("predicted peak") && Catch::Contains("9.00 GiB") &&
                       Catch::Contains("3.00 GiB") && Catch::Contains("the optimizer") &&
                       Catch::Contains("parameters 100 %") && Catch::Contains("32 + 31"));
  CHECK_THAT(text, !Catch::Contains("at least") && !Catch::Contains("225 +"));
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    CHECK(end - start <= kWidth);
    start = end + 1;
  }
}

TEST_CASE("an incomplete predicted peak is marked as a lower bound, and the row says why") {
  PredictedStep step = step_of(3);
  step.memory.predicted_peak_note = "without buffers of collectives";
  const std::string text = predictions_to_text("", {step}, kWidth);
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("at least 3.00 GiB") &&
                       Catch::Contains("without buffers of collectives"));
}

TEST_CASE("each row says whether its peak fits the card") {
  PredictedStep large = step_of(9);
  large.fits = false;
  PredictedStep small = step_of(3);
  small.fits = true;
  const std::string text =
      testing::with_single_spaces(predictions_to_text("", {large, small}, 300));
  CHECK_THAT(text, Catch::Contains("9.00 GiB no the optimizer") &&
                       Catch::Contains("3.00 GiB yes the optimizer"));
  CHECK_THAT(predictions_to_text("", {step_of(3)}, 300), !Catch::Contains("fits"));
}

TEST_CASE("a mode of another system under on_demand is marked 'this engine only'") {
  PredictedStep step = step_of(3);
  step.policy = "titan:full";
  CHECK_THAT(predictions_to_text("", {step}, 300), Catch::Contains("this engine only"));
  step.schedule = Schedule::kWholeRegion;
  CHECK_THAT(predictions_to_text("", {step}, 300), !Catch::Contains("this engine only"));
}

TEST_CASE("a prediction states the memory held on the host") {
  constexpr std::int64_t kMiB = 1 << 20;
  PredictedStep step = step_of(3);
  HostRecord& host = step.memory.host.emplace();
  host.peak = host.copied_out = Bytes{12 * kMiB};
  host.copied_back = Bytes{11 * kMiB};
  const std::string text = predictions_to_text("", {step}, 300);
  CHECK_THAT(text,
             Catch::Contains("on the host at most 12.0 MiB, copied out 12.0 MiB, back 11.0 MiB"));
}

}  // namespace
}  // namespace rematch
