#include "policies/predict/device/ceilings.h"

#include "policies/base/json.h"
#include "policies/predict/device/roofline.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_ceilings.h"
#include "tests/support/schema_check.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using Catch::Contains;
using testing::made_up_ceilings;

constexpr double kGiga = 1e9;

DeviceSheet sheet() {
  DeviceSheet sheet;
  sheet.name = "sheet";
  sheet.bfloat16_flops_per_second = 8 * kGiga;
  sheet.float32_flops_per_second = 1 * kGiga;
  sheet.memory_bytes_per_second = 4 * kGiga;
  return sheet;
}

// Builds a matmul, attention, a fused op and an elementwise op of bfloat16. The first two have
// 4,000 FLOPs.
Trace four_ops() {
  testing::TraceBuilder build("four", "bfloat16");
  const ValueId x = build.outside({4, 4}, "bfloat16", true);
  const auto call = [&](const char* name, OpClass op_class, std::int64_t flops) {
    const ValueId result = build.call(name, {x}, {4, 4}, {{0}, {}});
    build.last_output_is("bfloat16");
    build.trace().ops.back().op_class = op_class;
    build.trace().ops.back().flops = flops;
    return result;
  };
  call("aten::mm", OpClass::kMatmul, 4000);
  call("rematch::attention", OpClass::kAttentionForward, 4000);
  call("rematch::rms_norm", OpClass::kNorm, 0);
  call("aten::mul.Tensor", OpClass::kElementwise, 0);
  return build.finish();
}

std::vector<std::int64_t> forward_of(const Trace& trace, const MeasuredRates& measured) {
  std::vector<std::int64_t> times;
  for (const auto time : roofline_profile(trace, sheet(), measured).forward) {
    times.push_back(time.count());
  }
  return times;
}

// Each value has 16 elements of 2 bytes, so an op moves 64 bytes.
TEST_CASE("each kind of op has its own ceiling") {
  const Trace trace = four_ops();
  CHECK(forward_of(trace, {}) == std::vector<std::int64_t>{500, 500, 16, 16});
  Ceilings ceilings{.card = "card", .matmul = 4 * kGiga, .copy = 2 * kGiga};
  CHECK(forward_of(trace, {.ceilings = {{ceilings, ""}}}) ==
        std::vector<std::int64_t>{1000, 1000, 32, 32});
  ceilings.attention_forward = 2 * kGiga;
  ceilings.elementwise = 1 * kGiga;
  CHECK(forward_of(trace, {.ceilings = {{ceilings, ""}}}) ==
        std::vector<std::int64_t>{1000, 2000, 32, 64});
}

TEST_CASE("backward of attention has 2.5 times the FLOPs of forward, at a rate of its own") {
  const Trace trace = four_ops();
  Ceilings ceilings{.card = "card", .matmul = 4 * kGiga, .copy = 2 * kGiga};
  const auto backward = [&] {
    const Profile profile = roofline_profile(trace, sheet(), {.ceilings = {{ceilings, ""}}});
    return static_cast<double>(profile.backward_time().count());
  };
  // Each op takes an equal share of the scope's time in whole nanoseconds.
  const auto about = [](double nanoseconds) { return Approx(nanoseconds).margin(10); };
  CHECK(backward() == about(2 * (1000 + 1000 + 32 + 32)));
  ceilings.attention_backward = 5 * kGiga;
  CHECK(backward() == about(2 * (1000 + 32 + 32) + 2000));
}

// 8 tokens of width 4 and 100 classes in bfloat16: 6,400 FLOPs and 1,600 bytes of logits. A matmul
// takes 1,600 ns, longer than its bytes, and a pass over the logits takes 800 ns.
TEST_CASE("the fused loss reads its logits between the matmuls, in forward and in backward") {
  const auto profile = [](const std::string& name) {
    testing::TraceBuilder build("loss", "bfloat16");
    const ValueId x = build.outside({8, 4}, "bfloat16", true);
    const ValueId weight = build.outside({100, 4}, "bfloat16", true);
    build.call(name, {x, weight}, {8}, {{0, 1}, {}});
    build.trace().ops.back().flops = 6400;
    const Ceilings ceilings{.card = "card", .matmul = 4 * kGiga, .copy = 2 * kGiga};
    return roofline_profile(build.finish(), sheet(), {.ceilings = {{ceilings, ""}}});
  };
  // Each op takes an equal share of the scope's time in whole nanoseconds.
  const auto about = [](double nanoseconds) { return Approx(nanoseconds).margin(10); };
  const Profile recomputed = profile("rematch::linear_cross_entropy");
  CHECK(recomputed.forward_time().count() == 2400);
  CHECK(static_cast<double>(recomputed.backward_time().count()) == about(6400));
  const Profile kept = profile("rematch::linear_cross_entropy_with_logits");
  CHECK(kept.forward_time().count() == 2400);
  CHECK(static_cast<double>(kept.backward_time().count()) == about(4800));
}

TEST_CASE("float32 keeps the data sheet's rate of matmuls unless it was measured") {
  testing::TraceBuilder build("float32");
  const ValueId x = build.outside({4, 4}, "float32", true);
  build.call("aten::mm", {x}, {4, 4}, {{0}, {}});
  build.trace().ops.back().flops = 4000;
  const Trace trace = build.finish();
  Ceilings ceilings{.card = "card", .matmul = 4 * kGiga, .copy = 2 * kGiga};
  CHECK(forward_of(trace, {.ceilings = {{ceilings, ""}}}) == std::vector<std::int64_t>{4000});
  ceilings.float32_matmul = 2 * kGiga;
  CHECK(forward_of(trace, {.ceilings = {{ceilings, ""}}}) == std::vector<std::int64_t>{2000});
}

// 100 bfloat16 parameters. The update reads 2 + 4 + 8 bytes of each (gradient, master copy,
// moments) and writes 2 + 4 + 8: 2800 bytes. Without fused ops, a float32 copy of the gradient is
// written and read, and the master copy is read once more: 1200 bytes.
TEST_CASE("the fused optimizer moves 28 bytes of a parameter, at the rate of copies") {
  Trace trace = four_ops();
  trace.parameters = {{100, "bfloat16", 1}};
  Ceilings ceilings{.card = "card", .matmul = 4 * kGiga, .copy = 2 * kGiga};
  ceilings.elementwise = 1 * kGiga;
  const auto optimizer = [&] {
    return roofline_profile(trace, sheet(), {.ceilings = {{ceilings, ""}}}).optimizer.count();
  };
  CHECK(optimizer() == 4000);
  trace.dimensions["fused_ops"] = 1;
  CHECK(optimizer() == 1400);
}

TEST_CASE("the profile names the ceilings, and a profile by the data sheet names none") {
  const Trace trace = four_ops();
  CHECK(roofline_profile(trace, sheet()).ceilings.empty());
  const MeasuredRates measured{.ceilings = {{made_up_ceilings(), "made up"}}};
  CHECK(roofline_profile(trace, sheet(), measured).ceilings == "made up");
}

TEST_CASE("ceilings are read as they were written, and match the schema") {
  Ceilings ceilings = made_up_ceilings();
  CHECK(ceilings_from_json(ceilings_to_json(ceilings)) == ceilings);
  CHECK(testing::schema_error(ceilings_to_json(ceilings), "ceilings") == std::nullopt);
  ceilings = {.card = "card", .matmul = 1e12, .copy = 1e9};
  CHECK(ceilings_from_json(ceilings_to_json(ceilings)) == ceilings);
  CHECK(testing::schema_error(ceilings_to_json(ceilings), "ceilings") == std::nullopt);
}

TEST_CASE("ceilings without a rate, or with a rate of 0, are rejected with the key") {
  for (const char* key : {"copy_gb_per_second", "matmul_tflop_per_second",
                          "attention_forward_tflop_per_second", "elementwise_gb_per_second"}) {
    CAPTURE(key);
    Json json = ceilings_to_json(made_up_ceilings());
    json[key] = 0;
    CHECK_THROWS_WITH(ceilings_from_json(json), Contains(key) && Contains("must be above 0"));
  }
  Json json = ceilings_to_json(made_up_ceilings());
  json.erase("matmul_tflop_per_second");
  CHECK_THROWS_WITH(ceilings_from_json(json), Contains("matmul_tflop_per_second"));
}

}  // namespace
}  // namespace rematch
