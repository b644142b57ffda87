#include "policies/trace/trace_check.h"

#include <catch2/catch.hpp>
#include <functional>

#include "tests/support/ids.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

constexpr std::int64_t kTooMany = (std::int64_t{1} << 53) + 1;

TEST_CASE("a recorded trace is valid, and so is an empty trace") {
  CHECK(trace_problem(testing::toy_llama()) == std::nullopt);
  CHECK(trace_problem(Trace{}) == std::nullopt);
}

// Each row breaks one rule, and states what the message must contain.
TEST_CASE("each violation of a trace's rules is detected and named") {
  struct Broken {
    std::function<void(Trace&)> make;
    std::string message;
  };
  const Broken rows[] = {
      {[](Trace& t) { t.storages[3_storage].bytes = {-1}; }, "storage 3: has -1 bytes"},
      {[](Trace& t) { t.storages[3_storage].bytes = {kTooMany}; }, "storage 3: has"},
      {[](Trace& t) { t.values[4_value].storage = 9999_storage; },
       "value 4: refers to storage 9999"},
      {[](Trace& t) { t.values[4_value].storage = StorageId(-1); },
       "value 4: refers to storage -1"},
      {[](Trace& t) { t.values[4_value].producer = 9999_op; }, "value 4: refers to op 9999"},
      {[](Trace& t) {
         t.values[4_value].shape = {2, -2};
       },
       "value 4: has a dimension of -2"},
      {[](Trace& t) { t.ops[2_op].name.clear(); }, "op 2: has no name"},
      {[](Trace& t) { t.ops[2_op].scope = 9999_scope; },
       "op 2 (aten::mean.dim): refers to scope 9999"},
      {[](Trace& t) { t.ops[2_op].inputs[0].value = ValueId(-2); }, "refers to value -2"},
      {[](Trace& t) { t.ops[2_op].inputs[0].version = -1; }, "reads version -1"},
      {[](Trace& t) { t.ops[2_op].inputs[0].value = t.ops[2_op].outputs[0]; },
       "before an op produces this value"},
      {[](Trace& t) { t.ops[2_op].outputs[0] = t.ops[1_op].outputs[0]; },
       "is not the producer of its output"},
      {[](Trace& t) { t.ops[2_op].outputs.push_back(t.ops[2_op].outputs[0]); },
       "is not the producer of its output"},
      {[](Trace& t) { t.ops[2_op].outputs[0] = 9999_value; },
       "op 2 (aten::mean.dim): refers to value"},
      {[](Trace& t) { t.ops.back().outputs.pop_back(); }, "is not an output of its producer"},
      {[](Trace& t) { t.ops[3_op].writes[0] = 9999_storage; }, "refers to storage 9999"},
      {[](Trace& t) { t.ops[2_op].flops = kTooMany; }, "flops"},
      {[](Trace& t) { t.scopes[1_scope].path.clear(); }, "scope 1: has no name"},
      {[](Trace& t) { t.scopes[1_scope].path = ".a"; }, "scope 1 (.a): has no name"},
      {[](Trace& t) { t.scopes[1_scope].parent = 1_scope; },
       "scope 1 (blocks.0): refers to scope 1"},
      {[](Trace& t) { t.scopes[1_scope].first_op = OpId(-1); }, "spans ops -1 to"},
      {[](Trace& t) { t.scopes[1_scope].end_op = 0_op; }, "spans ops 1 to 0"},
      {[](Trace& t) { t.scopes[1_scope].end_op = 9999_op; }, "to 9999"},
      {[](Trace& t) { t.blocks[1].scope = ScopeId(-1); }, "block 1 (blocks): refers to scope -1"},
      {[](Trace& t) { t.blocks[1].index = -3; }, "has layer index -3"},
      {[](Trace& t) { t.packs[5_pack].value = 9999_value; }, "pack 5: refers to value 9999"},
      {[](Trace& t) { t.packs[5_pack].version = -1; }, "pack 5: has version -1"},
      {[](Trace& t) { t.packs.back().at_op = 0_op; }, "is packed after 0 ops"},
      {[](Trace& t) { t.packs[5_pack].at_op = 9999_op; }, "pack 5: is packed after 9999 ops"},
      {[](Trace& t) { t.packs[5_pack].dropped_at = 0_op; }, "pack 5: is dropped after 0 ops"},
      {[](Trace& t) { t.packs[5_pack].dropped_at = 9999_op; }, "is dropped after 9999 ops"},
      {[](Trace& t) { t.backward[0].op.clear(); }, "backward event 0: is not an op"},
      {[](Trace& t) { t.backward[0].pack = 0_pack; },
       "backward event 0 (aten::ones_like): is not an op"},
      {[](Trace& t) { t.backward[0].other_bytes = {-1}; }, "leaves -1 bytes"},
      {[](Trace& t) { t.backward[0].collective_bytes = {-1}; }, "exchanges -1 bytes"},
      {[](Trace& t) {
         t.gradient_sums = {{"all_reduce", "ep", {-2}}};
       },
       "all_reduce of gradients exchanges -2 bytes"},
      {[](Trace& t) { t.backward[1].pack = 9999_pack; }, "backward event 1: refers to pack 9999"},
      {[](Trace& t) { t.backward[1].op.push_back('x'); }, "both a pack's event and an op"},
      {[](Trace& t) { t.backward[0].gradient_bytes = {5}; },
       "has 5 bytes of gradients, but only 4 bytes in total"},
      {[](Trace& t) { t.backward[0].scope = 9999_scope; }, "refers to scope 9999"},
      {[](Trace& t) { t.stage = TracedStage{.index = 1}; },
       "stage 1 does not exist: the dimension pp is 1"},
      {[](Trace& t) { t.stage = TracedStage{.held_bytes = {-1}}; }, "the stage holds -1 bytes"},
      {[](Trace& t) { t.stage = TracedStage{.first_other_bytes = {Bytes{1}}}; },
       "the stage has bytes of 1 events in backward of 0"},
      {[](Trace& t) { t.parameter_bytes = {-1}; }, "parameters have -1 bytes"},
      {[](Trace& t) { t.constant_bytes = {-2}; }, "constants have -2 bytes"},
      {[](Trace& t) { t.gradient_bytes = {-3}; }, "gradients have -3 bytes"},
      {[](Trace& t) { t.parameters[0].count = -1; }, "there are -1 parameters"},
      {[](Trace& t) { t.storages.back().freed_at = 9999_op; }, "is freed at op 9999"},
      {[](Trace& t) { t.storages.back().freed_at = 0_op; }, "is freed at op 0 and made by op"},
  };
  for (const Broken& row : rows) {
    CAPTURE(row.message);
    Trace trace = testing::toy_llama();
    row.make(trace);
    const auto problem = trace_problem(trace);
    REQUIRE(problem.has_value());
    CHECK_THAT(*problem, Catch::Contains(row.message));
  }
}

TEST_CASE("an op whose output shape depends on data is reported, although the trace is valid") {
  Trace trace = testing::toy_llama();
  CHECK(data_dependence(trace) == std::nullopt);
  trace.ops[2_op].name = "aten::nonzero";
  CHECK(trace_problem(trace) == std::nullopt);
  CHECK_THAT(data_dependence(trace).value_or(""), Catch::StartsWith("op 2 (aten::nonzero): "));
  // repeat_interleave with a single number repeats every row equally often
  trace.ops[2_op].name = "aten::repeat_interleave.self_int";
  CHECK(data_dependence(trace) == std::nullopt);
}

// x[rows] has as many rows as `rows` has numbers. x[mask] has as many rows as the mask has ones.
TEST_CASE(
    "indexing with a mask makes the shape depend on data, but indexing with row numbers does not") {
  const auto dependence = [](const char* index_dtype, const char* indexed_dtype) {
    testing::TraceBuilder builder("indexed");
    {
      const auto block = builder.scope("blocks", 0);
      const ValueId x = builder.outside({8}, indexed_dtype);
      builder.call("aten::index.Tensor", {x, builder.outside({8}, index_dtype)}, {4});
    }
    return data_dependence(builder.finish()).value_or("");
  };
  CHECK_THAT(dependence("bool", "float32"), Catch::StartsWith("op 0 (aten::index.Tensor): "));
  CHECK_THAT(dependence("uint8", "float32"), Catch::StartsWith("op 0 (aten::index.Tensor): "));
  CHECK(dependence("int64", "float32").empty());
  CHECK(dependence("int64", "bool").empty());
}

}  // namespace
}  // namespace rematch
