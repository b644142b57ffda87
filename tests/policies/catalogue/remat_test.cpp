// Tests saved regions: which ops are recomputed, which results are kept, and which spellings are
// rejected.
#include "policies/base/json.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/warnings.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/held.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/arbitrary_policy.h"
#include "tests/support/random_trace.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

using Names = std::vector<std::string>;

// Returns the names of the ops of the first block that are recomputed. Omits views, which cost
// nothing.
Names executed_again(const Trace& trace, const Plan& plan, Schedule schedule) {
  Names names;
  const OpRange range = region_ranges(trace, plan).at(0);
  const RegionType& type = plan.types.at(plan.regions[0].type);
  for (const ExecutedOp& op :
       simulate_region(trace, range.first, range.end, type, schedule).executed) {
    if (!trace.ops.at(op.op).is_view) names.push_back(trace.ops.at(op.op).name);
  }
  return names;
}

// A block that runs a gate, then a matmul, a gate and a matmul in the scope `part`, then an add.
// Backward of a matmul reads the matmul's input and weight. Backward of a gate reads the gate's
// input. Backward of the add reads nothing.
Trace gate_part_add() {
  TraceBuilder builder("gate_part_add");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  const auto linear = [&builder](ValueId in) {
    return builder.call("aten::mm", {in, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
  };
  {
    const auto block = builder.scope("blocks", 0);
    const ValueId gated = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
    ValueId out;
    {
      const auto part = builder.scope("part");
      out = linear(builder.call("aten::relu", {linear(gated)}, {8, 8}, {{}, {0}}));
    }
    builder.call("aten::add.Tensor", {x, out}, {8, 8});
  }
  return builder.finish();
}

constexpr std::int64_t kOne = 8 * 8 * 4;  // bytes of each tensor of gate_part_add

// The first gate is recomputed, so the first matmul's input is not kept. The result of relu is
// kept, because backward reads it. The scope's result is kept, because the recomputed add reads it.
TEST_CASE(
    "a saved region is not recomputed, and keeps the results that ops outside the region read") {
  const Trace trace = gate_part_add();
  const Plan plan = plan_of("remat(save=[part])", trace);
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::add.Tensor"});
  CHECK(held_after_forward(trace, plan).kept.count == 2 * kOne);
  const RegionType& type = plan.types.at(0);
  CHECK(decisions(type, "aten::mm") == "rS");
  CHECK(decisions(type, "aten::relu") == "S");
  CHECK(type.ops.at(1).skipped);
  CHECK(type.ops.at(1).reason == "in saved region *.part::any, and nothing reads it");
  CHECK_FALSE(type.ops.at(0).skipped);
  CHECK(type.ops.at(0).reason == "outside saved regions");
}

// Without early stop, torch_remat recomputes the add. on_demand does not.
TEST_CASE("whole_region recomputes a block to its end, and on_demand only what backward needs") {
  const Trace trace = gate_part_add();
  CHECK_FALSE(policy_of("remat(save=[part])").early_stop);
  CHECK(executed_again(trace, plan_of("remat(save=[part])", trace), Schedule::kOnDemand) ==
        Names{"aten::silu"});
  CHECK(executed_again(trace, plan_of("remat(save=[])", trace), Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::mm", "aten::relu", "aten::mm", "aten::add.Tensor"});
  Policy early = policy_of("remat(save=[part])");
  early.early_stop = true;
  const Plan plan = std::get<Plan>(resolve(early, trace));
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) == Names{"aten::silu"});
  // the scope's result is not kept, because no op reads it
  CHECK(held_after_forward(trace, plan).kept.count == kOne);
}

// torchtitan wraps the add that ends a block in a saved region. All ops before the add are
// recomputed, even if their results are not needed.
TEST_CASE("the last add of a block may be a saved region") {
  const Trace trace = gate_part_add();
  Policy policy = policy_of("remat(save=[part::relu])");
  policy.save_last_add = true;
  const Plan plan = std::get<Plan>(resolve(policy, trace));
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::mm", "aten::mm"});
  CHECK(plan.types.at(0).ops.back().reason ==
        "the last add of the block, a saved region, and nothing reads it");
  CHECK(executed_again(trace, plan_of("titan:FullActivationRematConfig", trace),
                       Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::mm", "aten::relu", "aten::mm"});
}

// The last add reads the matmul's result through a view outside the saved region. The add and the
// view are not recomputed, so no result of the region is kept.
TEST_CASE("a result of a saved region is not kept if only a view reads the result") {
  TraceBuilder builder("view_behind_region");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    const ValueId gated = builder.call("aten::silu", {x}, {8, 8}, {{0}, {}});
    const ValueId out =
        builder.call("aten::mm", {gated, builder.parameter({8, 8})}, {8, 8}, {{0, 1}, {}});
    builder.call("aten::add.Tensor", {x, builder.view("aten::view", out, {8, 8})}, {8, 8});
  }
  const Trace trace = builder.finish();
  Policy policy = policy_of("remat(save=[part::matmul])");
  policy.save_regions = {std::get<Selector>(parse_selector("matmul"))};
  policy.save_last_add = true;
  const Plan plan = std::get<Plan>(resolve(policy, trace));
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) == Names{"aten::silu"});
  CHECK(held_after_forward(trace, plan).kept.count == 0);
}

// Each matmul is a region of its own. silu, which makes the first matmul's input, and relu, which
// reads the first matmul's result, are recomputed.
TEST_CASE("a saved region may be a single op") {
  const Trace trace = gate_part_add();
  const Plan plan = plan_of("remat(save=[part::matmul])", trace);
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::relu", "aten::add.Tensor"});
  CHECK(held_after_forward(trace, plan).kept.count == 2 * kOne);
  CHECK(plan_sha256(plan) ==
        plan_sha256(plan_of("remat(save=[part::matmul#1,part::matmul#2])", trace)));
  const Plan second = plan_of("remat(save=[part::matmul],recompute=[part::matmul#1])", trace);
  CHECK(executed_again(trace, second, Schedule::kWholeRegion) ==
        Names{"aten::silu", "aten::mm", "aten::relu", "aten::add.Tensor"});
}

// The attention of toy_llama keeps rsqrt, two of the norm's products, the rotated query and key,
// the value, and both results of the attention op. It also keeps the output projection, which the
// residual add reads. pow is not kept, because backward does not read it. mean is not kept, because
// it is written in place.
TEST_CASE("if the attention of a Llama is saved, only the feed-forward is recomputed") {
  const Trace trace = toy_llama();
  const Plan plan = plan_of("remat(save=[attention])", trace);
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) ==
        Names{"aten::add.Tensor", "aten::pow.Tensor_Scalar", "aten::mean.dim", "aten::add_.Scalar",
              "aten::rsqrt", "aten::mul.Tensor", "aten::mul.Tensor", "aten::mm", "aten::silu",
              "aten::mm", "aten::mul.Tensor", "aten::mm", "aten::add.Tensor"});
  CHECK(decisions(plan.types.at(0), "aten::mm") == "rrSSrrr");
  CHECK(decisions(plan.types.at(0), "aten::pow.Tensor_Scalar") == "rr");
  CHECK(decisions(plan.types.at(0), "rematch::attention") == "S");
  CHECK(plan.types.size() == 1);
  CHECK(plan_of("remat(save=['attention'], recompute=[])", trace) == plan);
}

// add_ overwrites the result of mean, so this result cannot be kept. exp saves the overwritten
// value for backward, so recompute runs mean and add_ again.
TEST_CASE("a result in a saved region is recomputed if a later op overwrites the result") {
  TraceBuilder builder("overwritten");
  const ValueId x = builder.outside({8, 8}, "float32", /*needs_grad=*/true);
  {
    const auto block = builder.scope("blocks", 0);
    const auto part = builder.scope("part");
    const ValueId sum = builder.call("aten::mean.dim", {x}, {8, 8});
    builder.in_place("aten::add_.Scalar", {sum});
    builder.call("aten::exp", {sum}, {8, 8}, {{0}, {0}});
  }
  const Trace trace = builder.finish();
  const Plan plan = plan_of("remat(save=[part])", trace);
  CHECK(executed_again(trace, plan, Schedule::kWholeRegion) ==
        Names{"aten::mean.dim", "aten::add_.Scalar"});
  CHECK(plan.types.at(0).ops.at(0).reason ==
        "in saved region *.part::any, but is written in place later");
}

TEST_CASE("remat without its two region lists is rejected with a one-line error") {
  const std::string form =
      "remat needs the list of saved regions: write remat(save=[attention], recompute=[]), not (";
  CHECK(rejection_of("remat") == form + ")");
  CHECK(rejection_of("remat(attention)") == form + "attention)");
  CHECK(rejection_of("remat(save=attention)") == form + "save=attention)");
  CHECK(rejection_of("remat(save=[a],save=[b])") == form + "save=[a], save=[b])");
  CHECK(rejection_of("remat(recompute=[a])") == form + "recompute=[a])");
  CHECK_THAT(rejection_of("remat(save=[],recompute=[ffn])"),
             Catch::Contains("saves nothing, so everything is recomputed"));
  CHECK_THAT(rejection_of("remat(save=[ffn,ffn])"), Catch::Contains("the region ffn twice"));
  CHECK_THAT(rejection_of("remat(save=[*])"), Catch::Contains("use the policy none"));
  CHECK_THAT(rejection_of("remat(save=[ffn::matmal])"), Catch::Contains("did you mean 'matmul'"));
  CHECK(policy_of("remat( recompute=[ffn::matmul#1] , save=[ffn::matmul, attention] )").name ==
        "remat(save=[ffn::matmul,attention],recompute=[ffn::matmul#1])");
}

// torch_remat raises an error for a recomputed region inside a saved region.
TEST_CASE("a part of a saved region cannot be recomputed") {
  const Trace trace = toy_llama();
  const Policy policy = policy_of("remat(save=[attention],recompute=[attention::matmul#2])");
  CHECK(std::get<Rejected>(resolve(policy, trace)).message ==
        policy.name +
            ": *.attention::matmul#2 lies in *.attention::any, but recompute skips the whole saved "
            "region; save only the parts that must not run again");
  // `recompute` may name a whole saved region, or a region that is not saved
  CHECK(plan_sha256(plan_of("remat(save=[attention,ffn],recompute=[att*])", trace)) ==
        plan_sha256(plan_of("remat(save=[ffn])", trace)));
  CHECK(plan_sha256(plan_of("remat(save=[ffn],recompute=[attention])", trace)) ==
        plan_sha256(plan_of("remat(save=[ffn])", trace)));
}

TEST_CASE(
    "a remat region that matches no op gives a warning; if no region matches, remat is rejected") {
  const Trace trace = toy_llama();
  const Policy policy = policy_of("remat(save=[attention,moe])");
  CHECK(plan_warnings(policy, std::get<Plan>(resolve(policy, trace)), trace) ==
        Names{policy.name + ": nothing in its regions matches *.moe::any"});
  const auto none = resolve(policy_of("remat(save=[moe])"), trace);
  CHECK_THAT(std::get<Rejected>(none).message,
             Catch::Contains("nothing in its regions matches *.moe::any"));
}

TEST_CASE("a policy file stores both region lists of remat") {
  const Trace trace = toy_llama();
  Policy file = policy_of("remat(save=[attention,ffn::matmul],recompute=[ffn::matmul#1])");
  const Plan ours = std::get<Plan>(resolve(file, trace));
  file.name = "mine";
  const Policy read = from_file(file);
  CHECK(read.save_regions == file.save_regions);
  CHECK(plan_sha256(std::get<Plan>(resolve(read, trace))) == plan_sha256(ours));
}

// The results of views and of in-place ops cannot be kept, so these ops are recomputed where
// needed.
bool cannot_be_kept(const TracedOp& op, const PlannedOp& planned) {
  return op.is_view || !op.writes.empty() ||
         planned.reason.ends_with("but is written in place later");
}

// Outside saved regions, all ops before the early stop are recomputed. Inside saved regions, an op
// is recomputed only if its result cannot be kept, and a result is kept only if that avoids
// recomputing another op.
TEST_CASE("recompute runs all ops outside saved regions and saves no dead results", "[property]") {
  check_property("saved regions", [] {
    const Trace trace = random_trace(*rc::gen::inRange<std::uint32_t>(0, 40));
    Policy policy;
    policy.name = "mine";
    policy.save_regions = *rc::gen::nonEmpty(arbitrary_selectors());
    policy.recompute_regions = *arbitrary_selectors();
    policy.early_stop = *rc::gen::arbitrary<bool>();
    const auto resolved = resolve(policy, trace, NoEffect::kAllow);
    if (std::holds_alternative<Rejected>(resolved)) return;
    const Plan& plan = std::get<Plan>(resolved);
    const std::vector<OpRange> ranges = region_ranges(trace, plan);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const RegionGraph graph = make_region_graph(trace, ranges[i]);
      RegionType type = plan.types.at(plan.regions[i].type);
      const auto run = [&] {
        std::vector<bool> runs(type.ops.size(), false);
        for (const ExecutedOp& op : simulate_region(graph, type, Schedule::kWholeRegion).executed) {
          runs[op.op - ranges[i].first] = true;
        }
        return runs;
      };
      const std::vector<bool> runs = run();
      if (std::find(runs.begin(), runs.end(), true) == runs.end()) continue;
      const auto end = policy.early_stop ? static_cast<std::size_t>(graph.stop) : type.ops.size();
      for (std::size_t op = 0; op < type.ops.size(); ++op) {
        PlannedOp& planned = type.ops[op];
        const TracedOp& traced = trace.ops[ranges[i].first + static_cast<int>(op)];
        if (planned.treatment == Treatment::kRecompute && !planned.skipped && op < end) {
          RC_ASSERT(runs[op] || graph.ops[op].side_effect);
        }
        RC_ASSERT(!runs[op] || !planned.skipped || cannot_be_kept(traced, planned));
        if (planned.treatment != Treatment::kSave) continue;
        planned.treatment = Treatment::kRecompute;
        planned.skipped = true;
        RC_ASSERT(run()[op]);
        planned.treatment = Treatment::kSave;
        planned.skipped = false;
      }
    }
  });
}

}  // namespace
}  // namespace rematch::testing
