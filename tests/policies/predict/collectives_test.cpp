// Tests which ops a recompute must run so that no op reads a collective's result before it is
// complete. See Note [A collective and its wait].
#include "policies/predict/region/region.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "policies/predict/step/counts.h"
#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::TraceBuilder;

constexpr const char* kGather = "_c10d_functional::all_gather_into_tensor";
constexpr const char* kWait = "_c10d_functional::wait_tensor";

RegionType recompute_all(const Trace& trace, std::vector<int> saved = {}) {
  RegionType type;
  for (const TracedOp& op : trace.ops) type.ops.push_back({.name = op.name});
  for (const int op : saved) type.ops[static_cast<std::size_t>(op)].treatment = Treatment::kSave;
  return type;
}

std::vector<std::string> executed(const Trace& trace, const RegionType& type, Schedule schedule) {
  const auto num_ops = trace.ops.end_id();
  std::vector<std::string> names;
  for (const ExecutedOp& op : simulate_region(trace, 0_op, num_ops, type, schedule).executed) {
    names.push_back(trace.ops[op.op].name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("recomputing a collective's result also runs its wait") {
  TraceBuilder build("gather");
  const ValueId x = build.outside({2, 2}, "float32", true);
  const ValueId scaled = build.call("aten::mul.Tensor", {x, x}, {2, 2}, {{0}, {}});
  const ValueId all = build.call(kGather, {scaled}, {4, 2});
  build.wait(all);
  build.call("aten::sin", {all}, {4, 2}, {{0}, {}});
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {0_op, 4_op});
  CHECK(graph.ops[1].waits == std::vector<int>{2});
  const RegionType nothing = recompute_all(trace);
  CHECK(closure_of(graph, kept_values(graph, nothing.ops), {graph.slots.back().use}) ==
        std::vector<bool>{true, true, true, false});
  const Names all_but_last = {"aten::mul.Tensor", kGather, kWait};
  CHECK(executed(trace, nothing, Schedule::kOnDemand) == all_but_last);
  CHECK(executed(trace, nothing, Schedule::kWholeRegion) == all_but_last);
  // The kept result is already complete, so the collective is not issued again. Only a whole-region
  // recompute runs the wait again.
  const RegionType kept = recompute_all(trace, {1});
  CHECK(executed(trace, kept, Schedule::kOnDemand) == Names{});
  CHECK(executed(trace, kept, Schedule::kWholeRegion) == Names{"aten::mul.Tensor", kWait});
}

// silu is the last op that packs a tensor, so early stop ends the recompute before the wait.
TEST_CASE("recompute runs a collective's wait even if the wait comes after the early stop") {
  TraceBuilder build("late wait");
  const ValueId x = build.outside({2, 2}, "float32", true);
  const ValueId scaled = build.call("aten::mul.Tensor", {x, x}, {2, 2}, {{0}, {}});
  const ValueId started = build.call(kGather, {x}, {2, 2});
  build.call("aten::silu", {scaled}, {2, 2}, {{0}, {}});
  const ValueId viewed = build.view("aten::view", started, {4});
  build.wait(viewed);
  build.call("aten::neg", {started}, {2, 2});
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {0_op, 6_op});
  REQUIRE(graph.stop == 2);
  CHECK(graph.ops[1].waits == std::vector<int>{4});
  const RegionType type = recompute_all(trace);
  // Recompute waits on the result itself. It does not run the view, because nothing demands the
  // view.
  CHECK(executed(trace, type, Schedule::kWholeRegion) == Names{"aten::mul.Tensor", kGather, kWait});
  CHECK(executed(trace, type, Schedule::kOnDemand) == Names{"aten::mul.Tensor"});
}

TEST_CASE("each result of a collective has its own wait, even if the collective is in-place") {
  TraceBuilder build("several");
  const ValueId x = build.outside({2, 2}, "float32", true);
  const std::vector<ValueId> whole =
      build.op("_c10d_functional::all_gather_into_tensor_coalesced", {x, x}, {{4, 2}, {4, 2}});
  build.wait(whole[1]);
  build.wait(whole[0]);
  build.wait(whole[0]);  // the result is already complete, so this wait belongs to no collective
  const ValueId sum = build.call("aten::add.Tensor", {whole[0], whole[1]}, {4, 2});
  build.in_place("_c10d_functional::all_reduce_", {sum});
  build.wait(sum);
  build.call("aten::sin", {sum}, {4, 2}, {{0}, {}});
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {0_op, 8_op});
  CHECK(graph.ops[0].waits == std::vector<int>{1, 2});
  CHECK(graph.ops[4].waits.empty());
  CHECK(graph.ops[5].waits == std::vector<int>{6});
  CHECK(executed(trace, recompute_all(trace), Schedule::kOnDemand) ==
        Names{"_c10d_functional::all_gather_into_tensor_coalesced", kWait, kWait,
              "aten::add.Tensor", "_c10d_functional::all_reduce_", kWait});
}

TEST_CASE(
    "a wait does not belong to an op of the region if its collective started before the region") {
  TraceBuilder build("outside");
  const ValueId x = build.outside({2, 2}, "float32", true);
  const ValueId started = build.call(kGather, {x}, {2, 2});
  const ValueId scaled = build.call("aten::mul.Tensor", {x, x}, {2, 2}, {{0}, {}});
  build.wait(started);
  build.call("aten::mul.Tensor", {scaled, started}, {2, 2}, {{0, 1}, {}});
  const Trace trace = build.finish();
  const RegionGraph graph = make_region_graph(trace, {1_op, 4_op});
  for (const RegionOp& op : graph.ops) CHECK(op.waits.empty());
}

}  // namespace
}  // namespace rematch
