#include "policies/export/torch_file.h"
#include "policies/base/rejected.h"

#include <algorithm>

#include "policies/export/system_config.h"
#include "policies/predict/region/region.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/golden.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::plan_of;
using testing::toy_llama;

constexpr Schedule kWhole = Schedule::kWholeRegion;

TorchRegions regions_of(const Trace& trace, const Plan& plan) {
  const auto found = torch_regions(trace, plan, kWhole);
  if (const auto* rejected = std::get_if<Rejected>(&found)) FAIL(rejected->message);
  return std::get<TorchRegions>(found);
}

std::string refusal(const Trace& trace, const Plan& plan, Schedule schedule = kWhole) {
  const auto found = torch_regions(trace, plan, schedule);
  REQUIRE(std::holds_alternative<Rejected>(found));
  const std::string message = std::get<Rejected>(found).message;
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

TEST_CASE("the file of a plan with a save list equals the approved file", "[golden]") {
  const Trace trace = toy_llama({.layers = 2});
  const Plan plan = plan_of("save_mm", trace);
  testing::check_golden("export/save_mm.py", torch_file(trace, plan, regions_of(trace, plan),
                                                        *find_call_place("torch"), "save_mm"));
}

TEST_CASE("for every system except megatron, the exported file says where to call its apply()",
          "[golden]") {
  const Trace trace = toy_llama({.layers = 2});
  const Plan plan = plan_of("save_mm", trace);
  const TorchRegions regions = regions_of(trace, plan);
  std::string beginnings;
  std::string code;
  for (const std::string_view target : config_targets()) {
    const CallPlace* place = find_call_place(target);
    if (place == nullptr) {
      CHECK(target == "megatron");
      continue;
    }
    const std::string file = torch_file(trace, plan, regions, *place, "mine");
    const std::size_t end = file.find("import functools");
    REQUIRE(end != std::string::npos);
    beginnings += "== " + std::string(target) + "\n" + file.substr(0, end);
    if (code.empty()) code = file.substr(end);
    CHECK(file.substr(end) == code);
  }
  testing::check_golden("export/call_places.txt", beginnings);
}

TEST_CASE("a plan's file lists each module once, and equal modules share an entry") {
  const Trace trace = toy_llama({.layers = 4});
  const TorchRegions found = regions_of(trace, plan_of("nth_first(2)", trace));
  REQUIRE(found.regions.size() == 2);
  CHECK(found.regions[0].module == "blocks.0");
  CHECK(found.regions[1].module == "blocks.2");
  REQUIRE(found.kinds.size() == 1);
  CHECK(found.kinds[0] == TorchRegionKind{});
}

// Selective checkpointing sees every op of a module except detach.
TEST_CASE("a plan's file identifies a saved op by its index among all ops of the module") {
  const Trace trace = toy_llama({.layers = 2});
  const TorchRegions found = regions_of(trace, plan_of("attn_only", trace));
  REQUIRE(found.kinds.size() == 1);
  const TorchRegionKind& kind = found.kinds[0];
  REQUIRE(kind.saved.size() == 1);
  CHECK(kind.ops[kind.saved[0]] == "rematch::attention");
  const TracedScope& block = trace.scopes[trace.blocks[0].scope];
  const auto first = trace.ops.begin() + block.first_op.index;
  const auto num_seen = std::count_if(first, trace.ops.begin() + block.end_op.index,
                                      [](const TracedOp& op) { return op.name != "aten::detach"; });
  CHECK(kind.ops.size() == static_cast<std::size_t>(num_seen));
}

TEST_CASE("if torch.utils.checkpoint cannot run a plan, the error names the region") {
  const Trace trace = toy_llama({.layers = 4});
  const Plan full = plan_of("full", trace);
  CHECK_THAT(refusal(trace, plan_of("segments(2)", trace)),
             Catch::StartsWith("region blocks.0 to blocks.1: the region spans several modules"));
  CHECK_THAT(refusal(trace, full, Schedule::kOnDemand),
             Catch::StartsWith("region blocks.0: the plan was made for schedule on_demand"));

  Plan whole_on_demand = full;
  for (RegionType& type : whole_on_demand.types) type.whole_on_demand = true;
  CHECK(std::holds_alternative<TorchRegions>(
      torch_regions(trace, whole_on_demand, Schedule::kOnDemand)));

  Plan by_demand = full;
  by_demand.types[0].by_demand = true;
  CHECK_THAT(refusal(trace, by_demand), Catch::Contains("only the ops that backward needs"));
  Plan offloading = full;
  offloading.types[0].ops[3].treatment = Treatment::kOffload;
  CHECK_THAT(refusal(trace, offloading), Catch::StartsWith("region blocks.0: the region offloads " +
                                                           full.types[0].ops[3].name));
  Plan with_inputs = full;
  with_inputs.types[0].stored_inputs[Store::kHost] = {{0, 0}};
  CHECK_THAT(refusal(trace, with_inputs),
             Catch::StartsWith("region blocks.0: the region keeps its inputs on the host"));
}

// Builds blocks that draw two masks. The first mask must not be kept if the second is drawn again.
Trace two_draws() {
  testing::TraceBuilder builder("draws");
  const ValueId weight = builder.parameter({4, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = builder.scope("blocks", layer);
    const ValueId first = builder.call("aten::bernoulli", {weight}, {4, 4});
    builder.last_op_draws();
    const ValueId product = builder.call("aten::mul.Tensor", {weight, first}, {4, 4}, {{0, 1}, {}});
    const ValueId second = builder.call("aten::bernoulli", {product}, {4, 4});
    builder.last_op_draws();
    builder.call("aten::mul.Tensor", {product, second}, {4, 4}, {{0, 1}, {}});
  }
  return builder.finish();
}

TEST_CASE("a plan may keep a random draw after a recomputed draw, but not before one") {
  const Trace trace = two_draws();
  Plan plan = plan_of("full", trace);
  REQUIRE(plan.types.size() == 1);
  CHECK(regions_of(trace, plan).kinds[0].draws_random);
  plan.types[0].ops[0].treatment = Treatment::kSave;
  CHECK_THAT(refusal(trace, plan),
             Catch::Contains("aten::bernoulli (op 2) draws after aten::bernoulli (op 0)"));
  plan.types[0].ops[0].treatment = Treatment::kRecompute;
  plan.types[0].ops[2].treatment = Treatment::kSave;
  CHECK(regions_of(trace, plan).kinds[0].saved == std::vector<std::size_t>{2});
}

TEST_CASE("a region that writes to a tensor from outside is rejected") {
  testing::TraceBuilder builder("counts");
  const ValueId weight = builder.parameter({4, 4});
  const ValueId counter = builder.outside({4, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = builder.scope("blocks", layer);
    builder.in_place("aten::add_.Tensor", {counter, weight});
    builder.call("aten::mul.Tensor", {weight, weight}, {4, 4}, {{0, 1}, {}});
  }
  const Trace trace = builder.finish();
  CHECK_THAT(
      refusal(trace, plan_of("full", trace)),
      Catch::Contains("aten::add_.Tensor (op 0) writes to a tensor that comes from outside"));
}

TEST_CASE("a region with a hidden effect is rejected for every target") {
  const std::string op = "rematch::attention";
  const Trace plain = toy_llama({.layers = 2});
  Trace keeping = plain;
  keeping.hidden.kept_ops = {op};
  Trace writing = plain;
  writing.hidden.silent_writers = {{op, {0}}};
  Trace calling = plain;
  for (TracedOp& each : calling.ops) {
    if (each.name == op) each.name = "rematch::opaque";
  }
  for (const Trace& trace : {keeping, writing, calling}) {
    CHECK_THAT(refusal(trace, plan_of("full", trace)),
               Catch::StartsWith("region blocks.0: rematch::") &&
                   Catch::Contains("has effects that torch does not see") &&
                   Catch::Contains("run the plan with rematch.Checkpoint"));
    const auto lines = system_config("transformers", trace, plan_of("full", trace));
    REQUIRE(std::holds_alternative<Rejected>(lines));
    CHECK_THAT(std::get<Rejected>(lines).message, Catch::Contains("torch does not see"));
  }
  Trace elsewhere = plain;
  elsewhere.hidden.kept_ops = {"lib::outside_of_regions"};
  CHECK(regions_of(elsewhere, plan_of("full", elsewhere)).regions.size() == 2);
}

TEST_CASE("a module that is called twice is checkpointed in both calls or in neither") {
  Trace trace = toy_llama({.layers = 4});
  // Layer 2 becomes a second call of layer 0.
  for (TracedScope& scope : trace.scopes) {
    if (scope.path.starts_with("blocks.2")) scope.path.replace(0, 8, "blocks.0");
  }
  Plan full = plan_of("full", toy_llama({.layers = 4}));
  full.regions[2].first_scope = full.regions[2].last_scope = "blocks.0";
  CHECK(regions_of(trace, full).regions.size() == 3);
  full.regions.erase(full.regions.begin() + 2);
  CHECK_THAT(refusal(trace, full),
             Catch::Contains("region blocks.0: the module is called several times"));
}

}  // namespace
}  // namespace rematch
