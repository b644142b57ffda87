// Tests which plans can be exported as files for torch_remat, and what the files contain.
#include "policies/export/remat_file.h"

#include "tests/policies/catalogue/decisions.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::plan_of;
using testing::toy_llama;
using testing::TraceBuilder;

constexpr Schedule kRunWhole = Schedule::kWholeRegion;

using Modules = std::vector<RematModule>;

Modules modules_of(const Trace& trace, const Plan& plan) {
  const auto found = remat_modules(trace, plan, kRunWhole);
  if (const auto* rejected = std::get_if<Rejected>(&found)) FAIL(rejected->message);
  return std::get<Modules>(found);
}

std::string remat_refusal(const Trace& trace, const Plan& plan, Schedule schedule = kRunWhole) {
  const auto found = remat_modules(trace, plan, schedule);
  REQUIRE(std::holds_alternative<Rejected>(found));
  const std::string message = std::get<Rejected>(found).message;
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

TEST_CASE(
    "modules_of() lists the modules that are not recomputed, and says whether recompute reads "
    "their results") {
  const Trace trace = toy_llama({.layers = 2});
  CHECK(modules_of(trace, plan_of("remat(save=[attention])", trace)) ==
        Modules{{"blocks.0", {{"attention", true}}}, {"blocks.1", {{"attention", true}}}});
  CHECK(modules_of(trace, plan_of("remat(save=[attention,ffn])", trace)).front() ==
        RematModule{"blocks.0", {{"attention", true}, {"ffn", true}}});
  CHECK(modules_of(trace, plan_of("remat(save=[])", trace)).front() == RematModule{"blocks.0", {}});
}

// Only `second` reads the result of `first`. Recompute skips both modules, so no op reads that
// result again.
TEST_CASE("recompute does not read a result that only another skipped module reads") {
  TraceBuilder builder("parts");
  ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    for (const char* name : {"first", "second"}) {
      const auto part = builder.scope(name);
      x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
    }
    x = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
  }
  const Trace trace = builder.finish();
  CHECK(modules_of(trace, plan_of("remat(save=[first,second])", trace)) ==
        Modules{{"blocks.0", {{"first", false}, {"second", true}}}});
}

TEST_CASE("if torch_remat cannot express a plan, the error lists the layers") {
  const Trace trace = toy_llama({.layers = 4});
  CHECK(remat_refusal(trace, plan_of("full", trace)) ==
        "layers 0-3 are not regions of torch_remat; region blocks.0: the recompute stops early, "
        "but torch_remat runs a module to its end; use a policy remat(save=[...])");
  CHECK_THAT(remat_refusal(trace, plan_of("remat(save=[ffn::matmul#2])", trace)),
             Catch::Contains("aten::mm (op ") &&
                 Catch::Contains("is kept, but torch_remat can only save whole modules"));
  CHECK_THAT(remat_refusal(trace, plan_of("offload_inputs(full_nostop)", trace)),
             Catch::Contains("the region keeps its inputs on the host"));
  CHECK_THAT(remat_refusal(trace, plan_of("remat(save=[ffn])", trace), Schedule::kOnDemand),
             Catch::Contains("the plan was made for schedule on_demand"));
  CHECK_THAT(remat_refusal(trace, plan_of("none", trace)), Catch::Contains("checkpoints nothing"));
  // torch_remat saves the same modules in all layers, so it cannot express a plan in which one
  // layer differs.
  Plan mixed = plan_of("remat(save=[attention])", trace);
  RegionType other = mixed.types[0];
  for (PlannedOp& op : other.ops) {
    if (op.name == "rematch::attention") op = {op.name, op.scope, op.bytes};
    if (op.name == "rematch::attention") op.skipped = true;
  }
  mixed.types.push_back(other);
  mixed.regions[2].type = 1;
  CHECK(remat_refusal(trace, mixed) ==
        "layer 2 is not a region of torch_remat; region blocks.2: torch_remat would save "
        "rematch::attention (op 17)");
}

TEST_CASE("a recompute that would repeat random draws is rejected") {
  TraceBuilder builder("draws");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    ValueId out;
    {
      const auto part = builder.scope("part");
      out = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
    }
    builder.call("aten::native_dropout", {out}, {8, 8});
  }
  Trace trace = builder.finish();
  trace.ops[OpId(1)].draws_random = true;
  CHECK_THAT(remat_refusal(trace, plan_of("remat(save=[part])", trace)),
             Catch::Contains("aten::native_dropout (op 1) draws random numbers"));
}

TEST_CASE("a file for torch_remat contains the modules and the predicted step") {
  const Trace trace = toy_llama({.layers = 2});
  const Plan plan = plan_of("remat(save=[attention])", trace);
  const std::string file =
      remat_file(trace, plan, modules_of(trace, plan), *find_call_place("remat"), "mine");
  CHECK_THAT(file, Catch::StartsWith("\"\"\"The plan 'remat(save=[attention])' for toy_llama"));
  CHECK_THAT(file, Catch::Contains("    \"blocks.0\": {\"attention\": True},\n"
                                   "    \"blocks.1\": {\"attention\": True},\n"));
  CHECK_THAT(file, Catch::Contains("mine.apply(model)"));
  CHECK_THAT(file, Catch::Contains("\"peak_bytes\": "));
  CHECK(file.find('@') == std::string::npos);
}

}  // namespace
}  // namespace rematch
