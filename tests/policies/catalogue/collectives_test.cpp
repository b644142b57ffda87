// Tests how policies treat collectives of activations, and gathers of sharded parameters.
#include <algorithm>

#include "policies/base/rejected.h"
#include "policies/catalogue/warnings.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

constexpr const char* kReduce = "_c10d_functional::all_reduce";
constexpr const char* kGather = "_c10d_functional::all_gather_into_tensor";
constexpr const char* kScatter = "_c10d_functional::reduce_scatter_tensor";
constexpr const char* kGatherAll = "_c10d_functional::all_gather_into_tensor_coalesced";

// Builds sequence parallel blocks: gather, a matmul, scatter.
Trace sequence_parallel() {
  TraceBuilder build("sequence_parallel");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = build.scope("blocks", layer);
    const ValueId weight = build.parameter({4, 4});
    const ValueId normed = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    const ValueId whole = build.call(kGather, {normed}, {8, 4});
    build.wait(whole);
    const ValueId product = build.call("aten::mm", {whole, weight}, {8, 4}, {{0, 1}, {}});
    const ValueId part = build.call(kScatter, {product}, {4, 4});
    build.wait(part);
    x = build.call("aten::add.Tensor", {x, part}, {4, 4});
  }
  return build.finish();
}

Plan plan_of(std::string_view policy, const Trace& trace) {
  auto plan = resolve(policy_of(policy), trace);
  if (const auto* rejected = std::get_if<Rejected>(&plan)) FAIL(rejected->message);
  return std::get<Plan>(std::move(plan));
}

Treatment treatment_of(const RegionType& type, std::string_view op) {
  const auto found = std::find_if(type.ops.begin(), type.ops.end(),
                                  [op](const PlannedOp& planned) { return planned.name == op; });
  REQUIRE(found != type.ops.end());
  return found->treatment;
}

TEST_CASE(
    "a policy decides by the kind of a collective whether to keep its result or issue it again") {
  const Trace trace = sequence_parallel();
  struct Row {
    const char* policy;
    Treatment gather;
    Treatment scatter;
  };
  for (const Row& row : std::vector<Row>{
           {"full", Treatment::kRecompute, Treatment::kRecompute},
           {"attn_only", Treatment::kSave, Treatment::kSave},
           {"sac_titan", Treatment::kRecompute, Treatment::kSave},
           {"keep_collectives(full)", Treatment::kSave, Treatment::kSave},
           {"keep_collectives(sac_titan)", Treatment::kSave, Treatment::kSave},
           {"reissue_collectives(sac_titan)", Treatment::kRecompute, Treatment::kRecompute},
       }) {
    CAPTURE(row.policy);
    const RegionType type = plan_of(row.policy, trace).types.at(0);
    CHECK(treatment_of(type, kGather) == row.gather);
    CHECK(treatment_of(type, kScatter) == row.scatter);
    CHECK(treatment_of(type, "_c10d_functional::wait_tensor") == Treatment::kRecompute);
  }
}

TEST_CASE("a collective without a wait is never issued again") {
  TraceBuilder build("hooked");
  ValueId x = build.outside({4, 4}, "float32", true);
  {
    const auto scope = build.scope("blocks", 0);
    x = build.call("c10d::allreduce_", {x}, {4, 4});
    x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
  }
  const RegionType type = plan_of("reissue_collectives(full)", build.finish()).types.at(0);
  CHECK(treatment_of(type, "c10d::allreduce_") == Treatment::kSave);
}

TEST_CASE("gathered parameters are dropped after forward under every policy but no_reshard") {
  const Trace trace = toy_sharded();
  for (const char* policy : {"full", "attn_only", "save_mm", "keep_collectives(save_mm)"}) {
    CAPTURE(policy);
    auto plan = resolve(policy_of(policy), trace, NoEffect::kAllow);
    if (const auto* rejected = std::get_if<Rejected>(&plan)) {
      INFO(rejected->message);
      CHECK(std::string(policy) == "attn_only");  // the model has no attention
      continue;
    }
    const RegionType& type = std::get<Plan>(plan).types.at(0);
    CHECK(treatment_of(type, kGatherAll) == Treatment::kRecompute);
  }
  const RegionType held = plan_of("no_reshard(full)", trace).types.at(0);
  CHECK(treatment_of(held, kGatherAll) == Treatment::kSave);
  CHECK(treatment_of(held, "aten::mm") == Treatment::kRecompute);
}

TEST_CASE("under policy none, each block is a region that only gathers its parameters again") {
  const Trace trace = toy_sharded();
  const Plan none = plan_of("none", trace);
  REQUIRE(none.regions.size() == 4);
  REQUIRE(none.types.size() == 1);
  CHECK(none.types[0].by_demand);
  CHECK(treatment_of(none.types[0], kGatherAll) == Treatment::kRecompute);
  CHECK(treatment_of(none.types[0], "aten::mm") == Treatment::kSave);
  CHECK(plan_of("no_reshard(none)", trace).regions.empty());
}

TEST_CASE("blocks without checkpointing gather their parameters again, in forward order") {
  const Plan plan = plan_of("nth_last(2)", toy_sharded());
  REQUIRE(plan.regions.size() == 4);
  REQUIRE(plan.types.size() == 2);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    CHECK(plan.regions[layer].layers == std::vector<int>{static_cast<int>(layer)});
    const RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[layer].type)];
    CHECK(treatment_of(type, "aten::mm") ==
          (layer % 2 == 1 ? Treatment::kRecompute : Treatment::kSave));
    CHECK(treatment_of(type, kGatherAll) == Treatment::kRecompute);
  }
}

TEST_CASE(
    "a policy that checkpoints parts of blocks warns that gathered parameters stay in memory") {
  const Trace trace = toy_sharded();
  const Policy policy = policy_of("recompute_modules([mlp])");
  const auto plan = resolve(policy, trace);
  REQUIRE(std::holds_alternative<Plan>(plan));
  const std::vector<std::string> warnings = plan_warnings(policy, std::get<Plan>(plan), trace);
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return warning.find("gathered parameters are held until backward") != std::string::npos;
  }));
}

TEST_CASE("policies such as keep_collectives warn if the model has no collectives") {
  TraceBuilder build("alone");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = build.scope("blocks", layer);
    x = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
  }
  const Trace trace = build.finish();
  for (const char* text :
       {"keep_collectives(full)", "reissue_collectives(full)", "no_reshard(full)"}) {
    CAPTURE(text);
    const Policy policy = policy_of(text);
    const auto plan = resolve(policy, trace);
    REQUIRE(std::holds_alternative<Plan>(plan));
    CHECK_FALSE(plan_warnings(policy, std::get<Plan>(plan), trace).empty());
  }
}

TEST_CASE("policies such as keep_collectives take the name of exactly one other policy") {
  CHECK_THAT(rejection_of("keep_collectives()"), Catch::Contains("takes one policy"));
  CHECK_THAT(rejection_of("keep_collectives(full,none)"), Catch::Contains("takes one policy"));
  CHECK_THAT(rejection_of("no_reshard(ful)"), Catch::Contains("unknown policy"));
  CHECK(policy_of("reissue_collectives(nth_last(2))").name == "reissue_collectives(nth_last(2))");
}

}  // namespace
}  // namespace rematch::testing
