#include "policies/plan/selector.h"

#include <catch2/catch.hpp>

#include "tests/support/ids.h"
#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

using Ops = std::vector<OpId>;

const Shape kShape = {2, 2};

Ops picked(std::string_view text, const Trace& trace) {
  const auto selector = parse_selector(text);
  REQUIRE(std::holds_alternative<Selector>(selector));
  const IdTable<OpId, bool> flags = matches(std::get<Selector>(selector), trace);
  REQUIRE(flags.size() == trace.ops.size());
  Ops ops;
  for (const OpId id : flags.ids()) {
    if (flags[id]) ops.push_back(id);
  }
  return ops;
}

// `inner` is not a result of the scope, because only the next op of the same scope reads it.
TEST_CASE("an op is a result of its scope if an op outside the scope reads it") {
  TraceBuilder build("parts");
  const ValueId x = build.outside(kShape);
  ValueId inner, both, last;
  {
    const auto block = build.scope("blocks", 0);
    {
      const auto part = build.scope("part");
      inner = build.call("aten::mm", {x, x}, kShape);       // 0
      both = build.call("aten::silu", {inner}, kShape);     // 1
      last = build.call("aten::mm", {both, both}, kShape);  // 2
      build.call("aten::mm", {both, both}, kShape);         // op 3: nothing reads its result
    }
    build.call("aten::add.Tensor", {last, both}, kShape);  // 4
  }
  const Trace trace = build.finish();
  CHECK(picked("*.part::result", trace) == Ops{1_op, 2_op});
  CHECK(picked("*.part::result#1", trace) == Ops{1_op});
  CHECK(picked("*.part::result#2", trace) == Ops{2_op});
  CHECK(picked("*.part::result#3", trace).empty());
  CHECK(picked("blocks.0::result", trace).empty());
  CHECK(picked("*.elsewhere::result", trace).empty());
}

TEST_CASE("the result of a scope is the op that made the storage, not a view") {
  TraceBuilder build("views");
  const ValueId x = build.outside(kShape);
  const ValueId early = build.call("aten::mm", {x, x}, kShape);  // op 0: outside every scope
  ValueId seen, unread, passed_on;
  {
    const auto part = build.scope("part");
    const ValueId made = build.call("aten::mm", {x, x}, kShape);  // 1
    seen = build.view("aten::t", made, kShape);                   // 2
    unread = build.call("aten::mm", {x, x}, kShape);              // 3
    passed_on = build.view("aten::t", early, kShape);             // op 4: a view of op 0's storage
  }
  const ValueId twice = build.view("aten::t", seen, kShape);  // 5
  build.view("aten::t", unread, kShape);                      // op 6: a view that nothing reads
  build.call("aten::mm", {twice, passed_on}, kShape);         // 7
  CHECK(picked("part::result", build.finish()) == Ops{1_op});
}

TEST_CASE(
    "if an in-place op overwrites another op's output, only the other op is a result of the "
    "scope") {
  TraceBuilder build("writes");
  const ValueId x = build.outside(kShape);
  const ValueId early = build.call("aten::mm", {x, x}, kShape);  // 0
  ValueId written, to_write;
  {
    const auto part = build.scope("part");
    build.in_place("aten::relu_", {early});                 // 1
    written = build.call("aten::mm", {x, x}, kShape);       // 2
    build.in_place("aten::relu_", {written});               // 3
    to_write = build.call("aten::mm", {x, early}, kShape);  // 4
  }
  // op 5: reads the value that it overwrites
  build.in_place("aten::relu_", {to_write});
  build.call("aten::add.Tensor", {early, written}, kShape);  // 6
  CHECK(picked("part::result", build.finish()) == Ops{2_op, 4_op});
}

// If several nested scopes match a selector, only the outermost one counts.
TEST_CASE("each nested scope has its own results") {
  TraceBuilder build("nest");
  const ValueId x = build.outside(kShape);
  ValueId outer_result;
  {
    const auto outer = build.scope("outer");
    ValueId inner_result;
    {
      const auto inner = build.scope("inner");
      inner_result = build.call("aten::mm", {x, x}, kShape);  // 0
    }
    outer_result = build.call("aten::silu", {inner_result}, kShape);  // 1
  }
  // op 2 is outside every scope, so it is not the result of a scope
  build.call("aten::mm", {outer_result, x}, kShape);
  build.call("aten::mm", {outer_result, x}, kShape);  // 3
  const Trace trace = build.finish();
  CHECK(picked("*inner::result", trace) == Ops{0_op});
  CHECK(picked("outer::result", trace) == Ops{1_op});
  CHECK(picked("outer*::result", trace) == Ops{1_op});
  CHECK(picked("result", trace) == Ops{1_op});
}

// The two outputs of an op count as one result. Numbering starts at 1 whenever the scope is opened.
TEST_CASE("results are numbered by op, separately in each instance of the scope") {
  TraceBuilder build("instances");
  ValueId x = build.outside(kShape);
  for (int layer = 0; layer < 2; ++layer) {
    const auto block = build.scope("blocks", layer);
    const std::vector<ValueId> pair = build.op("aten::topk", {x}, {kShape, kShape});  // ops 0 and 2
    x = build.call("aten::add.Tensor", {pair[0], pair[1]}, kShape);                   // ops 1 and 3
    if (layer == 1) build.call("aten::mm", {x, x}, kShape);                           // 4
  }
  {
    const auto head = build.scope("head");
    build.call("aten::mm", {x, x}, kShape);  // 5
  }
  const Trace trace = build.finish();
  CHECK(picked("blocks.*::result", trace) == Ops{1_op, 3_op});
  CHECK(picked("result", trace) == Ops{1_op, 3_op});
  CHECK(picked("blocks.*::result#2", trace).empty());
}

TEST_CASE("two outputs of one op are one result") {
  TraceBuilder build("outputs");
  const ValueId x = build.outside(kShape);
  std::vector<ValueId> pair;
  ValueId last;
  {
    const auto part = build.scope("part");
    pair = build.op("aten::topk", {x}, {kShape, kShape});  // 0
    last = build.call("aten::mm", {x, x}, kShape);         // 1
  }
  const ValueId sum = build.call("aten::add.Tensor", {pair[0], pair[1]}, kShape);  // 2
  build.call("aten::add.Tensor", {sum, last}, kShape);                             // 3
  CHECK(picked("part::result#2", build.finish()) == Ops{1_op});
}

TEST_CASE("in a Llama, the result of each attention scope and ffn scope is its last matmul") {
  const Trace trace = toy_llama({.layers = 2});
  CHECK(picked("*.ffn::result", trace) == picked("*.ffn::matmul#3", trace));
  CHECK(picked("*.attention::result", trace) == picked("*.attention::matmul#4", trace));
}

// The reference implementation compares each op with each later op.
TEST_CASE("results of scopes equal those found by comparing every pair of ops", "[property]") {
  for (std::uint32_t seed = 0; seed < num_seeds(40); ++seed) {
    const Trace trace = random_trace(seed);
    for (const std::string pattern : {"*.attention", "*.ffn", "blocks.*", "*core"}) {
      CAPTURE(seed, pattern);
      const auto instance = [&](const TracedOp& op) {
        std::optional<ScopeId> found;
        for (auto id = op.scope; id; id = trace.scopes.at(*id).parent) {
          if (matches_pattern(pattern, trace.scopes.at(*id).path)) found = id;
        }
        return found;
      };
      const auto reads = [&](const TracedOp& op, StorageId storage) {
        for (const TracedUse& input : op.inputs) {
          if (trace.values.at(input.value).storage == storage) return true;
        }
        return false;
      };
      Ops expected;
      for (const OpId id : trace.ops.ids()) {
        const TracedOp& op = trace.ops[id];
        bool is_result = false;
        for (const ValueId output : op.outputs) {
          const StorageId storage = trace.values.at(output).storage;
          for (const OpId after : IdRange(id + 1, trace.ops.end_id())) {
            const TracedOp& reader = trace.ops[after];
            is_result = is_result || (!op.is_view && !reader.is_view && !reads(op, storage) &&
                                      reads(reader, storage) && instance(reader) != instance(op));
          }
        }
        if (is_result && instance(op)) expected.push_back(id);
      }
      REQUIRE(picked(pattern + "::result", trace) == expected);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
