#include "policies/predict/region/order.h"

#include "policies/predict/region/simulator.h"
#include "tests/policies/predict/backward_script.h"
#include "tests/support/catch.h"
#include "tests/support/trace_builder.h"

// The tensors below have one byte per element, because their dtype is bool.
namespace rematch {
namespace {

using testing::backward_op;
using testing::demand;
using testing::release;
using testing::saving;
using testing::TraceBuilder;

Bytes peak(const Trace& trace, const RegionType& type, Schedule schedule) {
  return simulate_region(trace, 0_op, trace.ops.end_id(), type, schedule).peak;
}

std::size_t num_executed(const Trace& trace, const RegionType& type, Schedule schedule) {
  return simulate_region(trace, 0_op, trace.ops.end_id(), type, schedule).executed.size();
}

struct Case {
  Trace trace;
  RegionType type;
};

// Builds five ops: `source` (op 0), `reduced` (op 1), a reader of `reduced` (op 2), `wide` (op 3),
// and a reader of the last two results (op 4). Slot 0 saves `reduced`. Slot 1 saves `wide` and is
// demanded first.
Case reduction_packed_early(int source_bytes, int reduced_bytes, int wide_bytes,
                            bool wide_of_source, const std::vector<int>& saved,
                            std::int64_t gradient_bytes) {
  TraceBuilder build("case", "bool");
  const ValueId x = build.outside({1}, "bool", true);
  const ValueId source = build.call("aten::gelu", {x}, {source_bytes});
  const ValueId reduced = build.call("aten::sum", {source}, {reduced_bytes});
  const ValueId out = build.call("aten::silu", {reduced}, {reduced_bytes}, {{0}, {}});
  const ValueId wide = build.call("aten::gelu", {wide_of_source ? source : x}, {wide_bytes});
  build.call("aten::mul.Tensor", {wide, out}, {1}, {{0}, {}});
  Case made{build.finish(), {}};
  made.trace.backward = {demand(1_pack),
                         backward_op(gradient_bytes),
                         release(1_pack),
                         demand(0_pack, gradient_bytes),
                         backward_op(gradient_bytes),
                         release(0_pack)};
  made.type = saving(made.trace, 0_op, 5_op, saved);
  return made;
}

// `source` has 100 bytes and is kept, `reduced` has 10, `wide` has 40, and gradients take 50.
// - whole_region makes `reduced` (110 bytes) and then releases the source.
// - The default order still holds the source when `wide` is made: 140 bytes, and 190 with the
//   gradient.
// - The chosen order makes `reduced` before the first demand.
TEST_CASE("the sum over a large kept tensor is computed before the first demand") {
  const Case made = reduction_packed_early(100, 10, 40, false, {0}, 50);
  CHECK(peak(made.trace, made.type, Schedule::kWholeRegion) == Bytes{110});
  CHECK(peak(made.trace, made.type, Schedule::kOnDemand) == Bytes{190});
  RegionType ordered = made.type;
  choose_order(made.trace, 0_op, 5_op, ordered);
  CHECK(ordered.demand_steps == std::vector<DemandStep>{{1, {0}, {}}});
  CHECK_FALSE(ordered.whole_on_demand);
  CHECK(peak(made.trace, ordered, Schedule::kOnDemand) == Bytes{110});
  CHECK(num_executed(made.trace, ordered, Schedule::kOnDemand) == 2);
  CHECK(num_executed(made.trace, ordered, Schedule::kWholeRegion) == 3);
}

// `source` has 60 bytes and is recomputed. `reduced` (5 bytes) and `wide` (30 bytes) are both made
// from `source`. Gradients take 60 bytes.
// - whole_region makes all three (95 bytes) and then releases the source.
// - The default order holds the source until `reduced` is demanded: 90 bytes with `wide`, and 150
//   with the gradient.
// - The chosen order makes `reduced` just after the first demand, and then releases the source.
TEST_CASE(
    "the sum over a recomputed tensor that two demands need is computed after the first demand") {
  const Case made = reduction_packed_early(60, 5, 30, true, {}, 60);
  CHECK(peak(made.trace, made.type, Schedule::kWholeRegion) == Bytes{95});
  CHECK(peak(made.trace, made.type, Schedule::kOnDemand) == Bytes{150});
  RegionType ordered = made.type;
  choose_order(made.trace, 0_op, 5_op, ordered);
  CHECK(ordered.demand_steps == std::vector<DemandStep>{{1, {}, {0}}});
  CHECK(peak(made.trace, ordered, Schedule::kOnDemand) == Bytes{95});
}

// `source` has 100 bytes and is recomputed. `reduced` has 5 bytes, `wide` has 30 and does not
// depend on `source`, and gradients take 60.
// - whole_region has a peak of 105 bytes, before there are gradients.
// - The default order makes the source when there are gradients: 160 bytes, and 165 with `reduced`.
// - The chosen order runs the region as a whole.
TEST_CASE("a region with a large temporary is recomputed as a whole, before gradients exist") {
  const Case made = reduction_packed_early(100, 5, 30, false, {}, 60);
  CHECK(peak(made.trace, made.type, Schedule::kWholeRegion) == Bytes{105});
  CHECK(peak(made.trace, made.type, Schedule::kOnDemand) == Bytes{165});
  RegionType ordered = made.type;
  choose_order(made.trace, 0_op, 5_op, ordered);
  CHECK(ordered.whole_on_demand);
  CHECK(ordered.demand_steps.empty());
  CHECK(peak(made.trace, ordered, Schedule::kOnDemand) == Bytes{105});
  CHECK(num_executed(made.trace, ordered, Schedule::kOnDemand) == 3);
}

// `source` has 5 bytes and is kept, `reduced` has 10 and `wide` has 1. Without gradients, both
// orders have a peak of 15 bytes, so the default order is kept.
TEST_CASE("the default order is used unless another order has a lower peak") {
  const Case made = reduction_packed_early(5, 10, 1, false, {0}, 0);
  RegionType ordered = made.type;
  ordered.demand_steps = {{1, {0}, {}}};  // choose_order() must replace these members
  ordered.whole_on_demand = true;
  choose_order(made.trace, 0_op, 5_op, ordered);
  CHECK(ordered == made.type);
}

TEST_CASE("ops that backward never demands do not run early") {
  Case made = reduction_packed_early(100, 10, 40, false, {0}, 50);
  made.trace.backward = {demand(1_pack), backward_op(50), release(1_pack), release(0_pack)};
  choose_order(made.trace, 0_op, 5_op, made.type);
  CHECK(made.type.demand_steps.empty());
}

}  // namespace
}  // namespace rematch
