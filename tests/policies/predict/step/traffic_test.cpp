#include "policies/predict/step/counts.h"

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/roofline.h"
#include "policies/predict/step/step_range.h"
#include "tests/support/catch.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

// Builds two blocks on four ranks. Each block gathers [4, 4] to [16, 4] and multiplies it. Backward
// runs a reduce-scatter of 256 bytes in each block, and then an all-reduce of 64 bytes.
Trace gathering() {
  testing::TraceBuilder build("gathering");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = build.scope("blocks", layer);
    const ValueId part = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    const ValueId whole = build.call("_c10d_functional::all_gather_into_tensor", {part}, {16, 4});
    build.trace().ops.back().group = "tp";
    build.wait(whole);
    x = build.call("aten::mm", {whole}, {4, 4}, {{0}, {}});
  }
  Trace trace = build.finish();
  trace.dimensions["tp"] = 4;
  for (BackwardEvent& event : trace.backward) {
    if (!collective_kind(event.op)) continue;
    event.op = "_c10d_functional::reduce_scatter_tensor";
    event.group = "tp";
    event.collective_bytes = Bytes{256};
  }
  trace.gradient_sums = {{"_c10d_functional::all_reduce_", "tp", Bytes{64}}};
  return trace;
}

Plan plan_of(const char* policy, const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow));
}

const Issued* issued(const Traffic& traffic, Phase phase, CollectiveKind kind) {
  const auto& in_phase = traffic[static_cast<std::size_t>(phase)];
  const auto found = in_phase.find(kind);
  return found == in_phase.end() ? nullptr : &found->second;
}

// With four ranks, a rank sends three quarters of the bytes of an all-gather or a reduce-scatter,
// and twice as much for an all-reduce.
TEST_CASE("a rank's bytes per phase are the bytes of its collectives in that phase") {
  const Trace trace = gathering();
  const Traffic none = predict_traffic(trace, plan_of("none", trace), Schedule::kOnDemand);
  CHECK(none[0] == std::map<CollectiveKind, Issued>{{CollectiveKind::kAllGather, {2, Bytes{384}}}});
  CHECK(issued(none, Phase::kRecompute, CollectiveKind::kAllGather) == nullptr);
  CHECK(*issued(none, Phase::kBackward, CollectiveKind::kReduceScatter) == Issued{2, Bytes{384}});
  CHECK(*issued(none, Phase::kOptimizer, CollectiveKind::kAllReduce) == Issued{1, Bytes{96}});
  const Traffic full = predict_traffic(trace, plan_of("full", trace), Schedule::kOnDemand);
  CHECK(*issued(full, Phase::kRecompute, CollectiveKind::kAllGather) == Issued{2, Bytes{384}});
  CHECK(full[0] == none[0]);
}

// The link takes 1 ns per byte. A step sends 384 + 384 + 96 bytes, and 384 more bytes with
// recompute.
TEST_CASE("the time of a step's collectives follows from the bytes that they send") {
  const Trace trace = gathering();
  DeviceSheet sheet;
  sheet.name = "slow";
  sheet.float32_flops_per_second = sheet.bfloat16_flops_per_second = 1e9;
  sheet.memory_bytes_per_second = sheet.link_bytes_per_second = 1e9;
  StepSimulator simulator(trace, OptimizerKind::kNothing);
  simulator.use_profile(roofline_profile(trace, sheet));
  const auto time_of = [&](const char* policy) {
    return *simulator.simulate(plan_of(policy, trace), Schedule::kOnDemand).time;
  };
  const StepTime none = time_of("none");
  const StepTime full = time_of("full");
  CHECK(none.communication.count() == 384 + 384 + 96);
  CHECK(full.communication.count() == none.communication.count() + 384);
  CHECK(full.total() - none.total() == full.recompute);
  CHECK(step_range(full).compute - step_range(none).compute ==
        full.recompute - Profile::Duration(384));
}

}  // namespace
}  // namespace rematch
