#include "reports/render/verdict.h"

#include <functional>

#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::sample_oom;
using testing::sample_point;
using testing::sample_recomputing;

constexpr Bytes operator""_MiB(unsigned long long count) {
  return Bytes{static_cast<std::int64_t>(count) << 20};
}

// Policy `none` peaks at 100 MiB in backward of blocks.7, with 40 MiB of saved activations. Policy
// `full` peaks at 70 MiB and recomputes 8 attention forwards per step.
PointRecord full_point() { return sample_recomputing("full", 8, 30_MiB, 1.23); }

void recompute_as_full(PointRecord& point) {
  const PointRecord full = full_point();
  point.counts = full.counts;
  point.predicted_counts = full.predicted_counts;
}

void move_to_optimizer(PointRecord& point, Bytes peak) {
  point.memory->peak_allocated = peak;
  point.memory->peak_phase = Phase::kOptimizer;
  point.memory->peak_scope = "";
  point.memory->holders_at_peak = {{Holder::kParameters, Bytes{peak.count * 62 / 100}},
                                   {Holder::kOptimizer, Bytes{peak.count * 31 / 100}},
                                   {Holder::kGradients, Bytes{peak.count * 7 / 100}}};
}

struct Row {
  const char* what;
  std::function<void(PointRecord& point, PointRecord& none)> change;
  VerdictKind kind;
  const char* text;
};

}  // namespace

// Each row changes a point of attn_only. Its peak is 20 MiB lower than that of `none`, and its step
// takes 1.1 times as long. Per step it recomputes 6 attention forwards and 12 matmuls.
TEST_CASE("a verdict states what a policy changes, or why it cannot change the peak") {
  const std::vector<Row> rows = {
      {"a lower peak for more time", [](auto&, auto&) {}, VerdictKind::kLowersPeak,
       "lowers the peak by 20 % for 10 % more time"},
      {"other bits of an exact plan",
       [](auto& point, auto&) { point.parity->gradient_bits_equal = false; },
       VerdictKind::kDifferent, "DIFFERENT from none"},
      {"other bits of a plan that does not keep bits",
       [](auto& point, auto&) {
         point.parity->gradient_bits_equal = false;
         point.effect->inexact_store = "compress8";
       },
       VerdictKind::kLowersPeak,
       "lowers the peak by 20 % for 10 % more time; not exact: the plan keeps values in compress8"},
      {"the same time",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"none", 1.0, {{0.995, 1.005}}, "same"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 % for no more time"},
      {"less time",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"none", 0.9, {{0.88, 0.92}}, "faster"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 % and takes 10 % less time"},
      {"a time within noise",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"none", 1.0, {{0.9, 1.1}}, "unsure"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 %; time unsure"},
      {"a time with a useless interval",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"none", 0.81, {{0.4, 1.64}}, "unsure"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 %; too noisy to measure"},
      {"a time relative to another point",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"full", 0.9, {{0.88, 0.92}}, "faster"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 % and takes 10 % less time than full"},
      {"one round has no interval",
       [](auto& point, auto&) {
         point.time->ratio = StepRatioRecord{"none", 1.1, std::nullopt, "unsure"};
       },
       VerdictKind::kLowersPeak, "lowers the peak by 20 %; time unsure"},
      {"no time pass", [](auto& point, auto&) { point.time.reset(); }, VerdictKind::kLowersPeak,
       "lowers the peak by 20 %; time not measured"},
      {"the remaining peak is in the optimizer",
       [](auto& point, auto&) { move_to_optimizer(point, 60_MiB); }, VerdictKind::kLowersPeak,
       "lowers the peak by 40 % for 10 % more time; no policy can go lower: the peak is in the "
       "optimizer, held by parameters 62 %, optimizer 31 %"},
      {"a plan that recomputes as much as policy full, at a higher peak",
       [](auto& point, auto&) { recompute_as_full(point); }, VerdictKind::kNothingAgainstFull,
       "saves nothing compared with full: it recomputes as many ops, and its peak is 14 % higher"},
      {"a plan that recomputes as much as policy full, at the same peak",
       [](auto& point, auto&) {
         recompute_as_full(point);
         point.memory = full_point().memory;
       },
       VerdictKind::kNothingAgainstFull,
       "saves nothing compared with full: it recomputes as many ops, and its peak is the same"},
      {"as much recomputed as full, a lower peak",
       [](auto& point, auto&) {
         recompute_as_full(point);
         point.memory->peak_allocated = 65_MiB;
       },
       VerdictKind::kLowersPeak, "lowers the peak by 35 % for 10 % more time"},
      {"the same peak, held by activations",
       [](auto& point, auto& none) { point.memory = none.memory; }, VerdictKind::kSavesNothing,
       "saves nothing: the same peak for 10 % more time; the peak is in the backward of blocks.7, "
       "held by saved activations 40 %, optimizer 30 %, parameters 15 %"},
      {"the same peak, in the optimizer",
       [](auto& point, auto& none) {
         move_to_optimizer(none, 100_MiB);
         point.memory = none.memory;
       },
       VerdictKind::kCannotLower,
       "cannot lower this peak: it is in the optimizer, held by parameters 62 %, optimizer 31 %"},
      {"the same peak, in the optimizer, holders not measured",
       [](auto& point, auto& none) {
         move_to_optimizer(none, 100_MiB);
         none.memory->holders_at_peak.clear();
         point.memory = none.memory;
       },
       VerdictKind::kCannotLower, "cannot lower this peak: it is in the optimizer"},
      {"the same peak, in backward, holders not measured",
       [](auto& point, auto& none) {
         none.memory->holders_at_peak.clear();
         point.memory = none.memory;
       },
       VerdictKind::kSavesNothing,
       "saves nothing: the same peak for 10 % more time; the peak is in the backward of blocks.7"},
      {"the same peak, in backward, held by parameters and gradients",
       [](auto& point, auto& none) {
         none.memory->holders_at_peak = {{Holder::kParameters, 50_MiB},
                                         {Holder::kGradients, 49_MiB},
                                         {Holder::kSavedActivations, Bytes{1 << 19}},
                                         {Holder::kOther, Bytes{1 << 19}}};
         point.memory = none.memory;
       },
       VerdictKind::kCannotLower,
       "cannot lower this peak: it is in the backward of blocks.7, held by parameters 50 %, "
       "gradients 49 %"},
      {"a higher peak",
       [](auto& point, auto&) {
         point.memory->peak_allocated = 110_MiB;
         point.memory->peak_phase = Phase::kRecompute;
         point.memory->holders_at_peak = {{Holder::kRecomputeTransient, 99_MiB}};
       },
       VerdictKind::kRaisesPeak,
       "raises the peak by 10 % for 10 % more time; the peak is in the recompute of blocks.7, held "
       "by recompute transient 90 %"},
      {"other loss bits",
       [](auto& point, auto&) {
         point.parity->loss_bits_equal = false;
         point.parity->first_different_step = 3;
         point.parity->first_different_tensor = "loss";
       },
       VerdictKind::kDifferent, "DIFFERENT from none at step 3, tensor loss"},
      {"another generator state",
       [](auto& point, auto&) { point.parity->generator_hash_equal = false; },
       VerdictKind::kDifferent, "DIFFERENT from none"},
      {"a parameter without gradient",
       [](auto& point, auto&) {
         point.parity->every_parameter_has_gradient = false;
         point.parity->first_parameter_without_gradient = "head.bias";
       },
       VerdictKind::kDifferent, "parity proves nothing: parameter head.bias got no gradient"},
      {"counts that differ from the plan",
       [](auto& point, auto&) {
         point.effect->counts_equal_prediction = false;
         point.effect->detail = "recompute matmul: 70 executed, 60 planned";
       },
       VerdictKind::kMiscounted,
       "WRONG COUNTS: executed ops differ from the prediction: recompute matmul: 70 executed, 60 "
       "planned"},
      {"counts that were edited, although the run says that they equal the prediction",
       [](auto& point, auto&) {
         point.predicted_counts = point.counts->by_class;
         --(*point.predicted_counts)[static_cast<std::size_t>(Phase::kForward)][OpClass::kMatmul];
         point.effect->counts_equal_prediction = true;
       },
       VerdictKind::kMiscounted,
       "WRONG COUNTS: executed 640 matmul in forward; the plan predicts 639"},
      {"no effect, as intended",
       [](auto& point, auto&) {
         point.effect = EffectRecord{"none", true, true, ""};
       },
       VerdictKind::kNoEffect, "changes nothing: its plan equals the plan of none, as intended"},
      {"an allowed plan without effect",
       [](auto& point, auto&) {
         point.effect = EffectRecord{"none", false, true, ""};
       },
       VerdictKind::kNoEffect, "changes nothing: its plan equals the plan of none"},
      {"none ran out of memory", [](auto&, auto& none) { none = sample_oom("none"); },
       VerdictKind::kFits, "finishes, although policy none does not (oom)"},
      {"it ran out of memory itself", [](auto& point, auto&) { point = sample_oom("attn_only"); },
       VerdictKind::kFailed, "FAILED: oom, asked for 20 MiB at aten::addmm with 90 MiB held"},
      {"it was skipped",
       [](auto& point, auto&) {
         point.status = PointStatus::kSkipped;
         point.reason = "a smaller shape ran out of memory";
       },
       VerdictKind::kFailed, "SKIPPED: a smaller shape ran out of memory"},
      {"peaks were not measured", [](auto& point, auto&) { point.memory.reset(); },
       VerdictKind::kNoReference, "peaks were not measured"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    PointRecord point = sample_recomputing("attn_only", 6, 20_MiB, 1.10);
    PointRecord none = sample_point("none");
    const PointRecord full = full_point();
    row.change(point, none);
    const Verdict verdict = judge_point(point, &none, &full);
    CHECK(verdict.kind == row.kind);
    CHECK(verdict.text == row.text);
  }
}

TEST_CASE(
    "the reference's verdict says that it is the reference, and without a reference there is no "
    "verdict") {
  const PointRecord none = sample_point("none");
  CHECK(judge_point(none, &none, nullptr).text ==
        "the reference; its peak is in the backward of blocks.7, held by saved activations 40 %, "
        "optimizer 30 %, parameters 15 %");
  const PointRecord full = full_point();
  CHECK(judge_point(full, &none, &full).kind == VerdictKind::kLowersPeak);
  CHECK(judge_point(full, nullptr, &full).kind == VerdictKind::kNoReference);
}

TEST_CASE(
    "a policy can lower only activation bytes, and cannot lower a peak in the optimizer step") {
  PointRecord point = sample_point();
  CHECK(out_of_reach(*point.memory) == 60_MiB);
  point.memory->holders_at_peak[Holder::kRecomputeTransient] = 5_MiB;
  CHECK(out_of_reach(*point.memory) == 55_MiB);
  point.memory->peak_phase = Phase::kOptimizer;
  CHECK(out_of_reach(*point.memory) == 100_MiB);
}

}  // namespace rematch
