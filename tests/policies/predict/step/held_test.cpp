#include "policies/predict/step/held.h"

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/step/step.h"
#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

HeldAfterForward held(std::string_view policy, int layers) {
  const Trace trace = testing::toy_llama({.layers = layers});
  const auto plan = resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow);
  return held_after_forward(trace, std::get<Plan>(plan));
}

// Bytes of 8 tokens with dim 16 in float32.
constexpr std::int64_t kWidth = 8 * 16 * 4;

TEST_CASE("policy full holds each block's input and the tensors of embedding, head and loss") {
  const HeldAfterForward two = held("full", 2);
  const HeldAfterForward five = held("full", 5);
  CHECK(two.kept == Bytes{0});
  CHECK(two.inputs == Bytes{2 * kWidth});
  CHECK(five.inputs == Bytes{5 * kWidth});
  CHECK(five.unmanaged == two.unmanaged);
}

// Attention has two results: its output, and the log-sum-exp of 2 heads and 8 tokens.
TEST_CASE("policy attn_only holds the bytes of policy full and the results of attention") {
  const HeldAfterForward full = held("full", 3);
  const HeldAfterForward attention = held("attn_only", 3);
  CHECK(attention.kept == Bytes{3 * (kWidth + 2 * 8 * 4)});
  CHECK(attention.inputs == full.inputs);
  CHECK(attention.unmanaged == full.unmanaged);
}

TEST_CASE("without checkpointing, held bytes grow linearly with the number of layers") {
  std::vector<std::int64_t> totals;
  for (const char* policy : {"full", "first_n(3)", "first_n(2)", "first_n(1)", "none"}) {
    totals.push_back(held(policy, 4).total().count);
  }
  const std::int64_t per_layer = totals[1] - totals[0];
  CHECK(per_layer > 0);
  for (std::size_t i = 1; i < totals.size(); ++i) CHECK(totals[i] - totals[i - 1] == per_layer);
}

TEST_CASE("the only input of a region is the residual stream") {
  CHECK(held("segments(2)", 4).inputs == Bytes{2 * kWidth});
  CHECK(held("root", 4).inputs == Bytes{0});
}

// The two differ by what only the program holds, such as the loss. The difference is the same under
// every plan.
TEST_CASE("held bytes equal the simulator's bytes at the end of forward") {
  for (const int layers : {1, 3}) {
    const Trace trace = testing::toy_llama({.layers = layers});
    StepSimulator simulator(trace, OptimizerKind::kNothing);
    std::optional<Bytes> of_program;
    for (const char* policy : {"none", "full", "full_nostop", "attn_only", "save_mm", "first_n(1)",
                               "sac_titan", "offload_inputs(full)", "offload_inputs(save_mm)"}) {
      CAPTURE(layers, policy);
      const auto resolved =
          resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow);
      const Plan& plan = std::get<Plan>(resolved);
      const StepPrediction step = simulator.simulate(plan, Schedule::kWholeRegion);
      const Bytes rest = step.after_forward - held_after_forward(trace, plan).total();
      CHECK(rest == of_program.value_or(rest));
      of_program = rest;
    }
  }
}

// The first block keeps its result (10 bytes), which the second block reads and the head saves.
// Both blocks read x (7 bytes), which the head saves too. Each tensor is counted once. The head
// also saves a view of a parameter, which is not counted.
TEST_CASE("a tensor with several holders is counted once") {
  testing::TraceBuilder build("shared", "bool");
  const ValueId weight = build.parameter({3});
  const ValueId x = build.call("aten::gelu", {build.outside({1}, "bool", true)}, {7});
  ValueId y = x;
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = build.scope("blocks", layer);
    y = build.call("aten::mm", {y, x}, {layer == 0 ? 10 : 5}, {{0, 1}, {}});
    if (layer == 0) build.call("aten::mul.Tensor", {y, x}, {1}, {{0, 1}, {}});
    if (layer == 0) continue;
    y = build.call("aten::silu", {y}, {5}, {{0}, {}});
  }
  const ValueId first_result = build.trace().ops[1_op].outputs[0];
  build.call("aten::mul.Tensor", {first_result, x}, {1}, {{0, 1}, {}});
  build.call("aten::mm", {y, build.view("aten::t", weight, {3})}, {1}, {{1}, {}});
  const Trace trace = build.finish();
  const auto plan = resolve(std::get<Policy>(parse_policy("save_mm")), trace);
  const HeldAfterForward bytes = held_after_forward(trace, std::get<Plan>(plan));
  CHECK(bytes.kept == Bytes{10 + 5});
  CHECK(bytes.inputs == Bytes{7});
  CHECK(bytes.unmanaged == Bytes{0});
}

}  // namespace
}  // namespace rematch
