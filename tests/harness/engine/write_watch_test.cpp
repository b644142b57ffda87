// Tests steps in which forward overwrites a tensor that an earlier region has read. See Note
// [Watching writes].
#include "harness/engine/write_watch.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <functional>

#include "policies/predict/region/late_copies.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr int kTableLayers = 3;

// All layers share `table`, and a layer may overwrite it.
using TableLayer =
    std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& table)>;

NamedNetwork with_table(const std::string& name, const TableLayer& layer) {
  return {name, [layer] {
            Network network;
            network.input = at::randn({4, 8}).requires_grad_();
            const at::Tensor table = at::randn({4, 8});
            network.buffers = {table};
            for (int i = 0; i < kTableLayers; ++i) {
              const at::Tensor w = at::randn({8, 8}).mul_(0.3).requires_grad_();
              network.parameters.push_back(w);
              network.layers.push_back(
                  [layer, w, table](const at::Tensor& x) { return layer(x, w, table); });
            }
            return network;
          }};
}

at::Tensor write_then_read(const at::Tensor& x, const at::Tensor& w, const at::Tensor& table) {
  table.mul_(0.9);
  return at::sin(at::mm(x, w) + table);
}

at::Tensor write_then_read_views(const at::Tensor& x, const at::Tensor& w,
                                 const at::Tensor& table) {
  table.select(0, 1).add_(1);
  const at::Tensor half = table.slice(0, 0, 2);
  return at::sin(at::mm(x, w) + half.cos().repeat({2, 1})) * table.view({4, 8}).abs().sum();
}

at::Tensor write_through_list(const at::Tensor& x, const at::Tensor& w, const at::Tensor& table) {
  const std::vector<at::Tensor> rows = {table.select(0, 0), table.select(0, 3)};
  at::_foreach_mul_(rows, 0.5);
  return at::sin(at::mm(x, w) + table);
}

std::vector<NamedNetwork> networks_with_table() {
  return {with_table("whole table", &write_then_read),
          with_table("views of the table", &write_then_read_views),
          with_table("lists of views", &write_through_list)};
}

// Returns a plan that keeps the ops with an even index (parity 0) or an odd index (parity 1). With
// parity -1 it keeps no op.
Plan plan_keeping(const Trace& trace, int parity) {
  return plan_of_blocks(trace, [parity](int, int op) { return op % 2 == parity; });
}

TEST_CASE("before a later layer overwrites a tensor, the regions that read the tensor copy it") {
  for (const NamedNetwork& network : networks_with_table()) {
    CAPTURE(network.name);
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (const Schedule schedule : kSchedules) {
      for (const int parity : {-1, 0, 1}) {
        CAPTURE(to_string(schedule), parity);
        const Plan plan = plan_keeping(trace, parity);
        CHECK(plan.watches_writes);
        CHECK(first_difference(plain, run_engine(network, plan, schedule)).empty());
      }
    }
  }
}

TEST_CASE(
    "before ops outside of regions overwrite a tensor, the regions that read the tensor copy it") {
  for (const NamedNetwork& network : networks_with_table()) {
    CAPTURE(network.name);
    const Outcome plain = run_plain(network);
    Plan plan = plan_keeping(trace_of(network), -1);
    plan.regions.erase(plan.regions.begin() + 1);
    for (const Schedule schedule : kSchedules) {
      CAPTURE(to_string(schedule));
      CHECK(first_difference(plain, run_engine(network, plan, schedule)).empty());
    }
  }
}

TEST_CASE(
    "a plan whose trace has no late writes does not watch for writes, and refuses a late write") {
  const NamedNetwork network = with_table("whole table", &write_then_read);
  Plan plan = plan_keeping(trace_of(network), -1);
  plan.watches_writes = false;
  CHECK_THROWS_WITH(run_engine(network, plan, Schedule::kOnDemand),
                    Catch::Contains("changed in place"));
  const NamedNetwork only_reads = with_table(
      "only read", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& table) {
        return at::sin(at::mm(x, w) + table);
      });
  CHECK_FALSE(plan_keeping(trace_of(only_reads), -1).watches_writes);
  // In this network each layer reads the table and then overwrites it. A region copies tensors that
  // its own ops overwrite, so the plan need not watch for writes.
  const NamedNetwork reads_first = with_table(
      "read first", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& table) {
        const at::Tensor y = at::sin(at::mm(x, w) + table);
        table.mul_(0.9);
        return y;
      });
  CHECK_FALSE(plan_keeping(trace_of(reads_first), -1).watches_writes);
}

TEST_CASE("each copy that a later write causes is listed once, together with the writing op") {
  const NamedNetwork network = with_table(
      "two reads", [](const at::Tensor& x, const at::Tensor& w, const at::Tensor& table) {
        table.mul_(0.9);
        return at::sin(at::mm(x, w) + table) * table.sin();
      });
  const Trace trace = trace_of(network);
  const LateCopies late(trace);
  std::vector<LateCopy> found;
  for (int layer = 0; layer < kTableLayers; ++layer) {
    const TracedScope& scope = trace.scopes[trace.blocks[static_cast<std::size_t>(layer)].scope];
    const std::vector<LateCopy> copies = late.of({scope.first_op, scope.end_op});
    found.insert(found.end(), copies.begin(), copies.end());
  }
  const auto first_op = [&](std::size_t layer) {
    return trace.scopes[trace.blocks[layer].scope].first_op;
  };
  const Bytes table_bytes{4 * 8 * 4};
  REQUIRE(found.size() == 2);
  CHECK((found[0] == LateCopy{first_op(1), table_bytes}));
  CHECK((found[1] == LateCopy{first_op(2), table_bytes}));
}

}  // namespace
}  // namespace rematch::testing
