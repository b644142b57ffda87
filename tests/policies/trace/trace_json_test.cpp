#include "policies/trace/trace_json.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/spans.h"
#include "policies/trace/trace_op.h"
#include "tests/support/ids.h"
#include "tests/support/in_tree.h"
#include "tests/support/random_trace.h"
#include "tests/support/schema_check.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Catch::Contains;
using testing::random_trace;
using testing::toy_llama;

Trace through_text(const Trace& trace) {
  return trace_from_json(parse_json(trace_to_json(trace).dump(), "trace"));
}

// Returns the same trace with values and storages numbered at random. Every numbering is legal.
Trace shuffled(Trace trace, std::uint32_t seed) {
  std::mt19937 engine(seed);
  IdTable<ValueId, ValueId> value_ids(trace.values.size());
  IdTable<StorageId, StorageId> storage_ids(trace.storages.size());
  std::iota(value_ids.begin(), value_ids.end(), ValueId());
  std::iota(storage_ids.begin(), storage_ids.end(), StorageId());
  std::shuffle(value_ids.begin(), value_ids.end(), engine);
  std::shuffle(storage_ids.begin(), storage_ids.end(), engine);
  const auto value = [&](ValueId id) { return value_ids[id]; };
  const auto storage = [&](StorageId id) { return storage_ids[id]; };
  Trace result = trace;
  for (const ValueId id : trace.values.ids()) {
    TracedValue moved = trace.values[id];
    moved.storage = storage(moved.storage);
    result.values[value_ids[id]] = moved;
  }
  for (const StorageId id : trace.storages.ids()) {
    result.storages[storage_ids[id]] = trace.storages[id];
  }
  for (TracedOp& op : result.ops) {
    for (TracedUse& use : op.inputs) use.value = value(use.value);
    for (ValueId& output : op.outputs) output = value(output);
    for (StorageId& written : op.writes) written = storage(written);
  }
  for (TracedPack& pack : result.packs) pack.value = value(pack.value);
  return result;
}

TEST_CASE("a random trace reads back unchanged and fits the schema", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(300); ++seed) {
    CAPTURE(seed);
    const Trace trace = random_trace(seed, {.layers = static_cast<int>(seed % 7),
                                            .block_types = 1 + static_cast<int>(seed % 3),
                                            .ops_per_block = 1 + static_cast<int>(seed % 20),
                                            .ops_outside_blocks = static_cast<int>(seed % 5)});
    REQUIRE(through_text(trace) == trace);
    if (seed % 20 == 0)
      REQUIRE(testing::schema_error(trace_to_json(trace), "trace") == std::nullopt);
  }
}

TEST_CASE("collectives of backward and gradient sums read back unchanged") {
  Trace trace = toy_llama();
  const std::string hash = trace_sha256(trace);
  const auto op = std::find_if(trace.backward.begin(), trace.backward.end(), [](const auto& event) {
    return event.kind == BackwardEvent::Kind::kOp;
  });
  op->op = "_c10d_functional::all_reduce";
  op->group = "tp";
  op->collective_bytes = {4096};
  trace.gradient_sums = {{"_c10d_functional::all_reduce_", "ep", {12}}};
  CHECK(through_text(trace) == trace);
  CHECK(testing::schema_error(trace_to_json(trace), "trace") == std::nullopt);
  CHECK(trace_sha256(trace) != hash);
}

TEST_CASE("a stage of a pipeline reads back unchanged, and equal stages have one hash") {
  const auto stage_of = [](std::int64_t index) {
    Trace trace = toy_llama();
    trace.dimensions["pp"] = 4;
    trace.stage = TracedStage{index, Bytes{4096}, {}, {}};
    return accumulating(std::move(trace), 8);
  };
  const Trace trace = stage_of(1);
  CHECK(trace.stage->first_other_bytes.size() == trace.backward.size());
  CHECK(through_text(trace) == trace);
  CHECK(testing::schema_error(trace_to_json(trace), "trace") == std::nullopt);
  CHECK(trace_sha256(trace) == trace_sha256(stage_of(2)));
  CHECK(trace_sha256(trace) != trace_sha256(toy_llama()));
}

// Programs outside this project can write traces without knowing classes and flops.
TEST_CASE(
    "if a file lacks the class and flops of an op, they are derived from its name and shapes") {
  const Trace trace = toy_llama({.layers = 3});
  Json json = trace_to_json(trace);
  std::int64_t flops = 0;
  for (Json& type : json["types"]) {
    for (Json& op : type["ops"]) {
      op.erase("class");
      op.erase("flops");
    }
  }
  const Trace read = trace_from_json(json);
  REQUIRE(testing::schema_error(json, "trace") == std::nullopt);
  for (const OpId id : read.ops.ids()) {
    CHECK(read.ops[id].op_class == op_class_of(read.ops[id].name));
    flops += read.ops[id].flops;
  }
  CHECK(flops > 0);
  // If every op of a span type has a class, missing flops are zero.
  Json with_classes = trace_to_json(trace);
  for (Json& type : with_classes["types"]) {
    for (Json& op : type["ops"]) op.erase("flops");
  }
  for (const TracedOp& op : trace_from_json(with_classes).ops) CHECK(op.flops == 0);
}

TEST_CASE("a matrix product takes two flops per multiplied pair") {
  Trace trace;
  trace.values = {{.shape = {4, 3}}, {.shape = {3, 5}}, {.shape = {5}}};
  TracedOp mm{
      .name = "aten::mm", .op_class = OpClass::kMatmul, .inputs = {{0_value, 0}, {1_value, 0}}};
  CHECK(flops_of(trace, mm) == 2 * 4 * 3 * 5);
  TracedOp addmm{.name = "aten::addmm",
                 .op_class = OpClass::kMatmul,
                 .inputs = {{2_value, 0}, {0_value, 0}, {1_value, 0}}};
  CHECK(flops_of(trace, addmm) == 2 * 4 * 3 * 5);
  mm.inputs.pop_back();
  CHECK(flops_of(trace, mm) == 0);
}

TEST_CASE("a trace with any numbering of values and storages reads back as the same trace",
          "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(200); ++seed) {
    CAPTURE(seed);
    const Trace trace = shuffled(random_trace(seed), seed);
    REQUIRE(through_text(trace) == trace);
  }
}

TEST_CASE("blocks that are nested, overlapping or adjacent read back unchanged", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(200); ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    Trace trace = random_trace(seed);
    for (int count = 0; count < 5; ++count) {
      const auto scope = ScopeId(engine() % trace.scopes.size());
      trace.blocks.push_back({scope, "more", count});
    }
    std::shuffle(trace.blocks.begin(), trace.blocks.end(), engine);
    REQUIRE(through_text(trace) == trace);
  }
}

TEST_CASE("traces without blocks, without packs or without ops read back unchanged") {
  Trace trace = random_trace(1);
  trace.blocks.clear();
  CHECK(through_text(trace) == trace);
  trace.packs.clear();
  std::erase_if(trace.backward, [](const BackwardEvent& event) { return event.pack.has_value(); });
  CHECK(through_text(trace) == trace);
  CHECK(through_text(Trace{}) == Trace{});
}

// The step has three types of spans: the ops before the layers, a layer, and the ops after the
// layers.
TEST_CASE("equal layers are stored once") {
  const SpannedTrace spanned = cut_into_spans(toy_llama({.layers = 12}));
  CHECK(spanned.spans.size() == 14);
  CHECK(spanned.types.size() == 3);
  std::set<int> layer_types;
  for (const TraceSpan& span : spanned.spans) {
    if (!span.path.empty()) layer_types.insert(span.type);
  }
  CHECK(layer_types.size() == 1);
  // In backward, the last layer's span may differ from the other layers' spans, because the
  // backward of the head precedes it.
  CHECK(spanned.backward_types.size() <= 4);
  const auto size = [](int layers) {
    return trace_to_json(toy_llama({.layers = layers})).dump().size();
  };
  CHECK(size(80) - size(12) < 68 * 250);
}

TEST_CASE("layers that differ are stored as different types") {
  Trace trace = toy_llama({.layers = 4});
  const std::size_t before = cut_into_spans(trace).types.size();
  const TracedScope& layer = trace.scopes.at(trace.blocks.at(2).scope);
  trace.ops.at(layer.first_op).draws_random = true;
  CHECK(cut_into_spans(trace).types.size() == before + 1);
  CHECK(through_text(trace) == trace);
}

TEST_CASE("traces have equal hashes if and only if their content is equal") {
  const Trace trace = toy_llama({.layers = 2});
  const std::string hash = trace_sha256(trace);
  CHECK(hash.size() == 64);
  CHECK(trace_sha256(through_text(trace)) == hash);
  CHECK(trace_sha256(toy_llama({.layers = 3})) != hash);
  Trace changed = trace;
  changed.ops.back().name += "_";
  CHECK(trace_sha256(changed) != hash);
  changed = trace;
  ++changed.backward.at(0).other_bytes.count;
  CHECK(trace_sha256(changed) != hash);
}

TEST_CASE(
    "the reader of traces accepts unknown keys of a newer minor version, but rejects other major "
    "versions") {
  const Trace trace = toy_llama({.layers = 2});
  Json json = trace_to_json(trace);
  json["schema"] = "rematch.trace/1.9";
  json["a_later_idea"] = {{"x", 1}};
  json["types"][0]["a_later_idea"] = 7;
  json["types"][0]["ops"][0]["a_later_idea"] = nullptr;
  json["spans"][0]["a_later_idea"] = "x";
  CHECK(trace_from_json(json) == trace);
  CHECK(testing::schema_error(json, "trace") == std::nullopt);
  json["schema"] = "rematch.trace/2.0";
  CHECK_THROWS_WITH(trace_from_json(json), Contains("this build reads 'rematch.trace/1.x'"));
  CHECK(testing::schema_error(json, "trace").has_value());
}

struct Mistake {
  std::function<void(Json&)> make;
  std::string message;
};

TEST_CASE("the error for a malformed trace gives the place of the mistake") {
  const Json good = trace_to_json(toy_llama({.layers = 2}));
  const Mistake mistakes[] = {
      {[](Json& j) { j.erase("types"); }, "key \"types\" is missing"},
      {[](Json& j) { j["types"][1]["ops"][3]["name"] = 4; }, "types[1].ops[3].name: found 4"},
      {[](Json& j) { j["types"][1]["ops"][3]["class"] = "matmull"; },
       "types[1].ops[3].class: 'matmull' is unknown; did you mean 'matmul'?"},
      {[](Json& j) { j["types"][1]["ops"][3]["inputs"] = {99999}; }, "refers to value 99999"},
      {[](Json& j) { j["types"][1]["ops"][3]["inputs"] = {-99999}; }, "from outside"},
      {[](Json& j) { j["types"][1]["ops"][0]["scope"] = -2147483648LL; }, "out of range"},
      {[](Json& j) { j["types"][1]["storage_bytes"][0] = -1; },
       "types[1].storage_bytes[0]: -1 is out of range"},
      {[](Json& j) { j["types"][1]["values"][0]["shape"] = {-1}; }, "values[0].shape[0]"},
      {[](Json& j) { j["types"][1]["scopes"][0]["end_op"] = 2147483647; }, "op position"},
      {[](Json& j) { j["types"][1]["scopes"][1]["path"] = ""; }, "has no name"},
      {[](Json& j) { j["types"][1]["packs"][0]["at_op"] = -100; }, "op position"},
      {[](Json& j) { j["spans"][1]["type"] = 17; }, "spans[1].type: 17 is out of range"},
      {[](Json& j) { j["spans"][1]["outside_values"] = Json::array(); }, "from outside"},
      {[](Json& j) { j["spans"][1]["outside_values"][0] = 2147483647; }, "refers to value"},
      {[](Json& j) { j["blocks"][0]["scope"] = 12345; }, "block 0 (blocks): refers to scope"},
      {[](Json& j) { j["backward"][0]["first_pack"] = 2147483647; }, "refers to pack"},
      {[](Json& j) { j["backward_types"] = Json::array(); }, "the list of types is empty"},
      {[](Json& j) { j["parameter_bytes"] = "many"; }, "parameter_bytes: found \"many\""},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.message);
    Json json = good;
    mistake.make(json);
    CHECK_THROWS_AS(trace_from_json(json), FormatError);
    CHECK_THROWS_WITH(trace_from_json(json), Contains(mistake.message));
  }
}

TEST_CASE("a small file that would expand to a huge trace is rejected") {
  Json json = trace_to_json(toy_llama({.layers = 2}));
  const Json span = json["spans"][1];
  for (int count = 0; count < 100000; ++count) json["spans"].push_back(span);
  CHECK_THROWS_WITH(trace_from_json(json), Contains("no training step is that large"));
}

// One random change anywhere must give a valid trace or FormatError, and nothing else.
TEST_CASE("no edit of a file crashes the reader", "[property]") {
  const std::string text = trace_to_json(random_trace(3)).dump();
  std::mt19937 engine(7);
  int refused = 0;
  for (int attempt = 0; attempt < 2000; ++attempt) {
    std::string changed = text;
    constexpr std::string_view kBytes = "0123456789-[]{},\":x";
    changed[engine() % changed.size()] = kBytes[engine() % kBytes.size()];
    try {
      trace_to_json(trace_from_json(parse_json(changed, "changed")));
    } catch (const FormatError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("an invalid trace is not written") {
  Trace trace = toy_llama({.layers = 2});
  trace.ops[5_op].inputs[0].value = 100000_value;
  CHECK_THROWS_WITH(trace_to_json(trace), Contains("trace of 'toy_llama' is not valid: op 5"));
}

TEST_CASE("the trace schema rejects a file that the reader rejects") {
  const Json good = trace_to_json(toy_llama({.layers = 2}));
  CHECK(testing::schema_error(good, "trace") == std::nullopt);
  const Json bad = read_json_file(testing::in_tree("tests/policies/trace/bad_trace.json"));
  CHECK(testing::schema_error(bad, "trace").has_value());
  CHECK_THROWS_WITH(trace_from_json(bad), Contains("types[0].storage_bytes[1]"));
}

TEST_CASE("a trace of 80 layers with 60 ops each survives writing and reading") {
  const Trace trace = toy_llama({.layers = 80});
  const testing::ScratchFolder folder;
  write_json_file(folder.file("trace.json"), trace_to_json(trace));
  const Trace read = trace_from_json(read_json_file(folder.file("trace.json")));
  CHECK(read == trace);
}

}  // namespace
}  // namespace rematch
