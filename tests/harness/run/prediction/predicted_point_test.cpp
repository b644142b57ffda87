// Tests how measurements are checked against predictions, with made-up points of two steps.
#include "harness/run/prediction/predicted_point.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr int kNumSteps = 2;
constexpr auto kRecompute = static_cast<std::size_t>(Phase::kRecompute);

// Makes a variant whose plan recomputes three mm per step. The engine must recompute exactly as
// many.
Variant variant_of_three() {
  Variant variant;
  variant.prediction.counts.by_op[kRecompute] = {{"aten::mm", 3}};
  variant.prediction.counts.by_class[kRecompute] = {{OpClass::kMatmul, 3}};
  return variant;
}

PointRecord counted(std::map<std::string, std::int64_t> recompute) {
  PointRecord point;
  point.effect.emplace();
  point.counts.emplace();
  point.counts->by_op[kRecompute] = std::move(recompute);
  return point;
}

TEST_CASE("counts of all steps equal the predicted counts exactly, or the point is invalid") {
  PointRecord equal = counted({{"aten::mm", 6}});
  check_counts(variant_of_three(), kNumSteps, equal);
  CHECK(equal.status == PointStatus::kOk);
  CHECK(equal.effect->counts_equal_prediction == true);

  PointRecord more = counted({{"aten::mm", 7}});
  check_counts(variant_of_three(), kNumSteps, more);
  CHECK(more.status == PointStatus::kInvalid);
  CHECK(more.effect->counts_equal_prediction == false);
  CHECK(more.reason ==
        "executed ops differ from the prediction: aten::mm in recompute: executed 7, predicted 6");

  PointRecord unforeseen = counted({{"aten::add", 1}, {"aten::mm", 6}});
  check_counts(variant_of_three(), kNumSteps, unforeseen);
  CHECK(unforeseen.effect->detail == "aten::add in recompute: executed 1, predicted 0");

  PointRecord missing = counted({});
  check_counts(variant_of_three(), kNumSteps, missing);
  CHECK(missing.effect->detail == "aten::mm in recompute: executed 0, predicted 6");
}

// Where a trace on meta contains `aten::view`, a step may run `aten::_reshape_alias` instead. See
// Note [One op, two names].
TEST_CASE("an op that runs under an alias counts as the predicted op") {
  Variant variant = variant_of_three();
  variant.prediction.counts.by_op[kRecompute]["aten::view"] = 5;
  PointRecord equal = counted({{"aten::_reshape_alias", 4}, {"aten::mm", 6}, {"aten::view", 6}});
  check_counts(variant, kNumSteps, equal);
  CHECK(equal.status == PointStatus::kOk);
  CHECK(equal.effect->counts_equal_prediction == true);

  PointRecord fewer = counted({{"aten::_reshape_alias", 3}, {"aten::mm", 6}, {"aten::view", 6}});
  check_counts(variant, kNumSteps, fewer);
  CHECK(fewer.effect->detail == "aten::view in recompute: executed 9, predicted 10");
}

TEST_CASE(
    "a check keeps the status of a point that ended early, and ignores counts that were not "
    "recorded") {
  PointRecord ended = counted({{"aten::mm", 5}});
  ended.status = PointStatus::kOom;
  ended.reason = "out of memory";
  check_counts(variant_of_three(), kNumSteps, ended);
  CHECK(ended.status == PointStatus::kOom);
  CHECK(ended.reason == "out of memory");
  CHECK(ended.effect->counts_equal_prediction == false);

  PointRecord uncounted;
  uncounted.effect.emplace();
  check_counts(variant_of_three(), kNumSteps, uncounted);
  CHECK_FALSE(uncounted.effect->counts_equal_prediction.has_value());
}

// The plan has two regions of the same type. In each region, 64 bytes are kept that backward never
// reads.
TEST_CASE("a point gets the counts of all its steps and the dead saves of all regions") {
  Variant variant = variant_of_three();
  PlannedOp dead;
  dead.bytes = Bytes{64};
  dead.dead_save = true;
  PlannedOp alive;
  alive.bytes = Bytes{512};
  variant.plan.types.resize(1);
  variant.plan.types[0].ops = {dead, alive};
  variant.plan.regions.resize(2);
  variant.prediction.memory.peak_allocated = Bytes{4096};
  PointRecord point;
  point.device = "cpu";
  point.memory.emplace();
  add_prediction(variant, kNumSteps, point);
  CHECK(point.predicted_counts.value()[kRecompute].at(OpClass::kMatmul) == 6);
  CHECK(point.memory->dead_save == Bytes{128});
  CHECK(point.memory->predicted_peak_allocated == Bytes{4096});
  CHECK(point.memory->predicted_peak_note.empty());
  point.device = "cuda";
  add_prediction(variant, kNumSteps, point);
  CHECK_FALSE(point.memory->predicted_peak_note.empty());
}

// The step has 3e9 flops and takes half a second.
TEST_CASE("a point with a step time has a rate, and a point without a step time has no rate") {
  Variant variant;
  variant.step_flops = 3'000'000'000;
  PointRecord point;
  point.device = "meta";
  add_flops(variant, {}, point);
  CHECK_FALSE(point.implied_flops_per_second.has_value());
  point.time.emplace().step_median = std::chrono::milliseconds(500);
  add_flops(variant, {}, point);
  CHECK(point.step_flops == 3'000'000'000);
  CHECK(point.implied_flops_per_second.value() == 6e9);
  CHECK_FALSE(point.most_flops_per_second.has_value());
}

// The step has 8e12 flops and takes 40 ms, so its rate is 200 TFLOP/s. A quarter of the flops are
// recomputed; without them the rate is 150 TFLOP/s. The data sheet's rate is 989.5 TFLOP/s.
TEST_CASE("a step's share of its card's peak rate is given with and without recompute") {
  Variant variant;
  variant.identity.dtype = "bfloat16";
  variant.step_flops = 8'000'000'000'000;
  variant.prediction.recomputed_flops = 2'000'000'000'000;
  PointRecord point;
  point.device = "cuda";
  Environment environment;
  environment.device = "NVIDIA H100 80GB HBM3";
  add_flops(variant, environment, point);
  CHECK_FALSE(point.model_flops_utilization.has_value());  // missing, because the point has no step
                                                           // time
  point.time.emplace().step_median = std::chrono::milliseconds(40);
  add_flops(variant, environment, point);
  CHECK(point.sheet_flops_per_second == 989.5e12);
  CHECK(point.hardware_flops_utilization.value() == Catch::Detail::Approx(200 / 989.5));
  CHECK(point.model_flops_utilization.value() == Catch::Detail::Approx(150 / 989.5));
}

// Returns the flops of a step without and with full recompute.
std::pair<std::int64_t, std::int64_t> step_flops(
    const std::string& model, const std::map<std::string, std::int64_t>& dimensions) {
  RunSettings settings;
  settings.request.model = std::get<ModelSpec>(make_spec(model, dimensions));
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies("none,full"));
  const auto variants = std::get<std::vector<Variant>>(make_variants(settings));
  CHECK(variants[0].step_flops == variants[1].step_flops - variants[1].prediction.recomputed_flops);
  return {variants[0].step_flops, variants[1].step_flops};
}

// Appendix B of the PaLM paper counts 6 N + 12 L H Q T flops per token. N is the number of
// parameters in matmuls: 2 layers with 64 x 64 (q, out), 64 x 32 (k, v) and 3 x 64 x 128
// (feed-forward), and a head with 64 x 512. H Q is the model's width.
TEST_CASE("a step's flops follow PaLM's formula") {
  constexpr std::int64_t kTokens = 32;
  constexpr std::int64_t kBatch = 2;
  constexpr std::int64_t kMultiplied = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128) + 64 * 512;
  const auto [model, hardware] = step_flops("llama_small", {{"layers", 2},
                                                            {"dim", 64},
                                                            {"heads", 4},
                                                            {"kv_heads", 2},
                                                            {"ffn", 128},
                                                            {"vocab", 512},
                                                            {"tokens", kTokens},
                                                            {"batch", kBatch}});
  CHECK(model == kBatch * kTokens * (6 * kMultiplied + 12 * 2 * 64 * kTokens));
  CHECK(hardware > model);
}

// Two of four layers have experts, and each of 128 tokens goes to two experts. An expert has three
// matrices with 32 rows. In the wide model, each matrix has 8 more columns.
TEST_CASE("an expert's matmuls count once per routed token") {
  std::map<std::string, std::int64_t> narrow = {{"layers", 4}, {"dim", 32},     {"moe_every", 2},
                                                {"top_k", 2},  {"tokens", 64},  {"batch", 2},
                                                {"heads", 4},  {"kv_heads", 2}, {"expert_ffn", 16}};
  std::map<std::string, std::int64_t> wide = narrow;
  wide["expert_ffn"] = 24;
  CHECK(step_flops("moe_small", wide).first - step_flops("moe_small", narrow).first ==
        2 * 6 * (2 * 128) * (3 * 32 * 8));
}

// The clock of a similarly named card, such as NVIDIA H100 PCIe or H100 NVL, may be different, so
// its rate is unknown.
TEST_CASE("a card has a peak rate only if its data sheet is known, and a CPU has no peak rate") {
  Environment environment;
  environment.device = "NVIDIA L40S";
  CHECK(sheet_flops_per_second(environment, "cuda", "bfloat16") == 362.05e12);
  CHECK(sheet_flops_per_second(environment, "cuda", "float32") == 91.6e12);
  CHECK_FALSE(sheet_flops_per_second(environment, "cpu", "float32").has_value());
  environment.variables["NVIDIA_TF32_OVERRIDE"] = "1";
  CHECK_FALSE(sheet_flops_per_second(environment, "cuda", "float32").has_value());
  for (const char* unknown : {"NVIDIA H100 PCIe", "Dry CUDA device (no kernel runs)"}) {
    environment.device = unknown;
    CHECK_FALSE(sheet_flops_per_second(environment, "cuda", "bfloat16").has_value());
  }
}

}  // namespace
}  // namespace rematch
