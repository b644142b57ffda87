// Tests which tensors policies keep on the host, and the warning if a policy offloads nothing.
#include <algorithm>

#include "policies/base/rejected.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/step/step.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

Plan plan_offloaded(std::string_view policy, const Trace& trace) {
  auto plan = resolve(policy_of(policy), trace);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(std::move(plan));
}

std::string refusal_of(std::string_view policy, const Trace& trace) {
  const auto plan = resolve(policy_of(policy), trace);
  const auto* rejected = std::get_if<Rejected>(&plan);
  return rejected == nullptr ? "" : rejected->message;
}

// Counts the offloaded ops by name.
std::map<std::string, int> on_host(const RegionType& type) {
  std::map<std::string, int> ops;
  for (const PlannedOp& op : type.ops) {
    if (op.treatment == Treatment::kOffload) ++ops[op.name];
  }
  return ops;
}

// A block reads its input and the rotary table. The table is shared by all blocks, and no op
// computes it.
TEST_CASE("an input of several regions is offloaded by the first region that reads it") {
  const Trace trace = toy_llama();
  const Plan plan = plan_offloaded("offload_inputs(full)", trace);
  REQUIRE(plan.types.size() == 1);
  CHECK(plan.types[0].stored_inputs[Store::kHost] == std::vector<RegionInput>{{0, 0}});
  CHECK(on_host(plan.types[0]).empty());
  CHECK(plan_sha256(plan) != plan_sha256(plan_offloaded("full", trace)));

  // An input has 8 tokens of 16 channels in float32. The inputs of the first three of the four
  // blocks are offloaded; the first of them is the embedding's result.
  StepSimulator simulator(trace);
  const StepPrediction full =
      simulator.simulate(plan_offloaded("full", trace), Schedule::kOnDemand);
  const StepPrediction step = simulator.simulate(plan, Schedule::kOnDemand);
  CHECK(full.host == HostMemory{});
  CHECK(step.host.peak == Bytes{3 * 8 * 16 * 4});
  CHECK(step.host.copied_out == step.host.peak);
  CHECK(step.host.copied_back == step.host.peak);
  CHECK(step.after_forward == full.after_forward - step.host.peak);
  CHECK(step.peak_bytes() <= full.peak_bytes());
  CHECK(step.recomputed_ops == full.recomputed_ops);
}

TEST_CASE("everything that a policy keeps can be offloaded, except for dead saves") {
  const RegionType kept = plan_offloaded("save_mm", toy_llama()).types.at(0);
  const RegionType type = plan_offloaded("offload_saved(save_mm)", toy_llama()).types.at(0);
  int dead = 0;
  for (std::size_t op = 0; op < kept.ops.size(); ++op) {
    CAPTURE(kept.ops[op].name, op);
    const bool is_wanted = kept.ops[op].treatment == Treatment::kSave && !kept.ops[op].dead_save;
    dead += kept.ops[op].dead_save;
    CHECK((type.ops[op].treatment == Treatment::kOffload) == is_wanted);
    CHECK(type.ops[op].treatment != Treatment::kSave);
  }
  CHECK(dead == 1);  // only an add reads w2's result
}

// 8 x 16 floats are 512 bytes, and 8 x 32 floats are 1024.
TEST_CASE("results smaller than the minimum offload size stay on the device") {
  Policy rule = policy_of("offload_saved(save_mm)");
  rule.moved_to[Store::kHost].at_least = Bytes{1024};
  const RegionType type = std::get<Plan>(resolve(rule, toy_llama())).types.at(0);
  // only the results of w1 and w3 have 1024 bytes
  CHECK(on_host(type) == std::map<std::string, int>{{"aten::mm", 2}});
  CHECK(std::any_of(type.ops.begin(), type.ops.end(), [](const PlannedOp& op) {
    return op.reason == "matches aten::mm; too small to offload";
  }));
}

// A policy that is written to a file and read again makes the same plan.
TEST_CASE("an offloading policy reads back unchanged") {
  for (const char* name : {"offload_inputs(full)", "offload_saved(attn_only)", "sac_and_offload",
                           "remat_minimal_offloaded", "offload_modules([attn_proj])"}) {
    CAPTURE(name);
    const Trace trace = toy_llama({.tokens = 64});
    Policy policy = policy_of(name);
    policy.name = "mine";
    CHECK(plan_sha256(std::get<Plan>(resolve(from_file(policy), trace))) ==
          plan_sha256(plan_offloaded(name, trace)));
  }
}

// The second block reads the first block's result and keeps it in memory, so a copy to the host
// frees nothing.
TEST_CASE("a result that the next region keeps on the device is saved, not offloaded") {
  TraceBuilder build("chained");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 3; ++layer) {
    const auto scope = build.scope("blocks", layer);
    const ValueId y = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    // offloading would free nothing, because autograd saves the result of exp on the device
    x = build.call("aten::exp", {y}, {4, 4}, {{}, {0}});
  }
  const Trace trace = build.finish();
  Policy rule = policy_of("full");
  rule.moved_to[Store::kHost].results = {{"", "aten::exp", std::nullopt}};
  CHECK_THAT(std::get<Rejected>(resolve(rule, trace)).message,
             Catch::Contains("offloads nothing of chained: its last region cannot offload"));
  const Plan allowed = std::get<Plan>(resolve(rule, trace, NoEffect::kAllow));
  CHECK(allowed.types.at(0).ops.at(1).treatment == Treatment::kSave);
  CHECK(allowed.types.at(0).ops.at(1).reason ==
        "matches aten::exp, but is held on the device anyway");
  rule.moved_to[Store::kHost].results = {{"", "aten::silu", std::nullopt}};
  const Plan plan = std::get<Plan>(resolve(rule, trace));
  CHECK(on_host(plan.types.at(0)) == std::map<std::string, int>{{"aten::silu", 1}});
}

TEST_CASE("a policy that offloads nothing gives a warning") {
  const Trace trace = toy_llama();
  CHECK_THAT(refusal_of("offload_saved(full)", trace),
             Catch::Contains("offload_saved(full) offloads nothing of toy_llama"));
  CHECK_THAT(refusal_of("offload_inputs(root)", trace), Catch::Contains("offloads nothing"));
  // There is one region, and backward begins with it.
  CHECK_THAT(refusal_of("offload_saved(last_n(1))", trace), Catch::Contains("offloads nothing"));
  Policy rule = policy_of("offload_inputs(last_n(1))");
  CHECK_THAT(refusal_of("offload_inputs(last_n(1))", trace),
             Catch::Contains("its last region cannot offload"));
  const Plan kept = std::get<Plan>(resolve(rule, trace, NoEffect::kAllow));
  const std::vector<std::string> warnings = plan_warnings(rule, kept, trace);
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.find("offloads nothing") != std::string::npos;
  }));
}

TEST_CASE("offload_modules keeps the inputs of modules on the host and recomputes nothing") {
  const Trace trace = toy_llama({.tokens = 64});
  const Plan plan = plan_offloaded("offload_modules([attn_proj,layer_input])", trace);
  CHECK(on_host(plan.types.at(0)) == std::map<std::string, int>{{"rematch::attention", 1}});
  CHECK(plan.types.at(0).stored_inputs[Store::kHost].size() == 1);
  const StepPrediction step = StepSimulator(trace).simulate(plan, Schedule::kOnDemand);
  CHECK(step.host.copied_back.count > 0);
  const auto parsed = parse_policy("offload_modules([core_atn])");
  CHECK_THAT(std::get<Rejected>(parsed).message,
             Catch::Contains("unknown module") && Catch::Contains("core_attn"));
}

}  // namespace
}  // namespace rematch::testing
