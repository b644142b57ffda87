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

// Builds five ops. `source` makes the first value, op 1 reduces it, and op 3 makes the wide value,
// which is demanded first. Slot 0 is the reduced value, and slot 1 is the wide value.
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

// The source has 100 bytes and is kept. The reduced value has 10 bytes and the wide value 40.
// Gradients take 50 bytes after the first backward op. Under whole_region, op 1 raises the bytes to
// 110, and then the source is released. In lazy order, the source is still alive when the wide
// value is made: 140 bytes, and 190 with the gradient. The chosen order runs the reduction before
// the first demand, like whole_region, but omits op 2.
TEST_CASE("a large kept source is consumed before the first demand") {
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

// The source has 60 bytes and is recomputed. Both the reduced value, 5 bytes, and the wide value,
// 30 bytes, are made from the source. Gradients take 60 bytes. Under whole_region, op 3 raises the
// bytes to 95, and then the source is released. In lazy order, the source is kept for the reduction
// while the wide value is alive: 90 bytes, and 150 with the gradient. A reduction before the first
// demand would hold 65 bytes and free nothing. After the first demand, the reduction frees 60 bytes
// and holds 5.
TEST_CASE("an intermediate that a later demand shares is consumed after the first demand") {
  const Case made = reduction_packed_early(60, 5, 30, true, {}, 60);
  CHECK(peak(made.trace, made.type, Schedule::kWholeRegion) == Bytes{95});
  CHECK(peak(made.trace, made.type, Schedule::kOnDemand) == Bytes{150});
  RegionType ordered = made.type;
  choose_order(made.trace, 0_op, 5_op, ordered);
  CHECK(ordered.demand_steps == std::vector<DemandStep>{{1, {}, {0}}});
  CHECK(peak(made.trace, ordered, Schedule::kOnDemand) == Bytes{95});
}

// The source has 100 bytes and is recomputed. The reduced value has 5 bytes. The wide value has 30
// bytes and is made from x. Gradients take 60 bytes. Under whole_region, the peak is 105 bytes, for
// the source and the reduced value. In lazy order, the gradient is alive when the source is made:
// 160 bytes, and 165 with the reduced value. An earlier reduction would hold 5 bytes more, not
// less.
TEST_CASE("a closure with a large temporary runs whole, before gradients exist") {
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

// The source has 5 bytes and is kept. The reduced value has 10 bytes and the wide value 1. There
// are no gradients. Both orders have a peak of 15 bytes, so the lazy order is chosen.
TEST_CASE("lazy order is used unless another order has a lower peak") {
  const Case made = reduction_packed_early(5, 10, 1, false, {0}, 0);
  RegionType ordered = made.type;
  ordered.demand_steps = {{1, {0}, {}}};  // a stale value that choose_order() must replace
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
