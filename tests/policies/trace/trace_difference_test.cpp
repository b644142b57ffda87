#include "policies/trace/trace_difference.h"

#include <functional>

#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using testing::toy_llama;

// Returns the differences between a toy trace and the same trace with a change.
std::vector<std::string> after(const std::function<void(Trace&)>& change) {
  const Trace trace = toy_llama({.layers = 2});
  Trace changed = trace;
  change(changed);
  return trace_differences(trace, changed);
}

TEST_CASE("traces are equal if they differ only in numbering and op aliases") {
  CHECK(after([](Trace&) {}).empty());
  CHECK(after([](Trace& trace) {
          for (TracedOp& op : trace.ops) {
            if (op.name == "aten::view") op.name = "aten::_reshape_alias";
          }
        }).empty());
  CHECK(after([](Trace& trace) {  // a storage that nothing refers to
          trace.storages.emplace_back();
        })
            .empty());
}

TEST_CASE("the first difference in each part of two traces is listed") {
  const auto op = after([](Trace& trace) { trace.ops[3_op].name = "aten::other"; });
  REQUIRE(!op.empty());
  CHECK_THAT(op[0], Catch::StartsWith("ops: the first difference is at number 3: ") &&
                        Catch::Contains("| aten::other in "));
  const auto exchange = after([](Trace& trace) { trace.backward[0].collective_bytes = {8}; });
  REQUIRE(exchange.size() == 1);
  CHECK_THAT(exchange[0], Catch::Contains("8 bytes exchanged"));
  const auto hidden = after([](Trace& trace) { trace.hidden.kept_ops = {"lib::noisy"}; });
  CHECK(hidden == std::vector<std::string>{"hidden effects: 0 and 1: the first difference is at "
                                           "number 0: nothing | lib::noisy cannot be repeated"});
  const auto pack = after([](Trace& trace) { trace.packs.pop_back(); });
  REQUIRE(pack.size() == 1);
  CHECK_THAT(pack[0], Catch::StartsWith("saved tensors: ") && Catch::EndsWith("| nothing"));
  const auto freed = after([](Trace& trace) {
    const ValueId output = trace.ops.back().outputs.back();
    const StorageId storage = trace.values[output].storage;
    trace.storages[storage].bytes.count += 8;
  });
  REQUIRE(freed.size() == 1);
  CHECK_THAT(freed[0], Catch::StartsWith("lifetimes: "));
  const auto backward = after([](Trace& trace) {
    for (BackwardEvent& event : trace.backward) {
      if (event.kind == BackwardEvent::Kind::kOp) event.other_bytes.count += 4;
    }
  });
  REQUIRE(backward.size() == 1);
  CHECK_THAT(backward[0],
             Catch::StartsWith("ops of backward: the first difference is at number 0"));
  const auto demands = after([](Trace& trace) {
    std::erase_if(trace.backward,
                  [](const auto& event) { return event.kind == BackwardEvent::Kind::kRelease; });
  });
  REQUIRE(demands.size() == 1);
  CHECK_THAT(demands[0], Catch::StartsWith("demands of backward: "));
  const auto sizes = after([](Trace& trace) { trace.gradient_bytes.count += 1; });
  REQUIRE(sizes.size() == 1);
  CHECK_THAT(sizes[0], Catch::StartsWith("sizes: the first difference is at number 3"));
}

}  // namespace
}  // namespace rematch
