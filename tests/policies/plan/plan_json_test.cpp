#include "policies/plan/plan_json.h"

#include <catch2/catch.hpp>
#include <functional>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/support/in_tree.h"
#include "tests/support/schema_check.h"

namespace rematch {
namespace {

using Catch::Contains;

// Returns a plan with two regions of one type, which keeps mm and recomputes relu.
Plan small_plan() {
  Plan plan;
  plan.policy = "save_mm";
  plan.model = "toy_llama";
  plan.types = {
      {{{"aten::mm", "ffn", {64}, Treatment::kSave, "matches aten::mm", false},
        {"aten::relu", "ffn", {64}, Treatment::kRecompute, "not in the save list", false}},
       true,
       false,
       {}}};
  plan.regions = {{"blocks.0", "blocks.0", 0, {0}}, {"blocks.1", "blocks.1", 0, {1}}};
  return plan;
}

// Returns a plan with a second shape: padded batches, for which each layer masks its scores.
Plan plan_of_two_shapes() {
  Plan plan = small_plan();
  plan.trace_sha256 = "unpadded";
  ShapePlan padded = plan;
  padded.policy = "full";
  padded.trace_sha256 = "padded";
  padded.types[0].ops.insert(
      padded.types[0].ops.begin(),
      {"aten::masked_fill", "attention", {64}, Treatment::kRecompute, "full", false});
  plan.other_shapes = {padded};
  return plan;
}

TEST_CASE("a plan's JSON contains the treatment of each op and the layers of each type") {
  const Json json = plan_to_json(small_plan());
  CHECK(json["types"][0]["ops"][0].dump() ==
        R"({"name":"aten::mm","scope":"ffn","bytes":64,"treatment":"save",)"
        R"("reason":"matches aten::mm"})");
  CHECK(json["layers"].dump() == R"([{"type":0,"layers":"0, 1","regions":2}])");
}

TEST_CASE("consecutive layers are printed as ranges") {
  CHECK(layer_ranges({}).empty());
  CHECK(layer_ranges({4}) == "4");
  CHECK(layer_ranges({0, 1, 2, 3}) == "0-3");
  CHECK(layer_ranges({0, 2, 4, 5, 7, 8, 9}) == "0, 2, 4, 5, 7-9");
  CHECK(layer_ranges({3, 2, 1}) == "3, 2, 1");
}

TEST_CASE("plans that keep and recompute the same ops have the same hash") {
  const Plan plan = small_plan();
  const std::string hash = plan_sha256(plan);
  CHECK(hash.size() == 64);

  Plan same = plan;
  same.policy = "save(aten::mm)";
  same.types[0].ops[0].reason = "matches matmul";
  same.types[0].ops[0].dead_save = true;
  same.regions[1].layers.clear();
  CHECK(plan_sha256(same) == hash);

  same.types.push_back(same.types[0]);  // gives the second region its own copy of the type
  same.types[1].ops[1].reason = "other words";
  same.regions[1].type = 1;
  CHECK(plan_sha256(same) == hash);
  std::swap(same.types[0], same.types[1]);
  same.types.insert(same.types.begin(), RegionType{});  // adds a type that no region uses
  same.regions[0].type = 1;
  same.regions[1].type = 2;
  CHECK(plan_sha256(same) == hash);
}

TEST_CASE("plans that keep or recompute different ops have different hashes") {
  const std::function<void(Plan&)> changes[] = {
      [](Plan& p) { p.model = "other"; },
      [](Plan& p) { p.dimensions["layers"] = 3; },
      [](Plan& p) { p.dtype = "bfloat16"; },
      [](Plan& p) { p.trace_sha256 = "0"; },
      [](Plan& p) { p.types[0].ops[1].treatment = Treatment::kOffload; },
      [](Plan& p) { p.types[0].ops[1].name = "aten::silu"; },
      [](Plan& p) { p.types[0].early_stop = false; },
      [](Plan& p) { p.types[0].whole_on_demand = true; },
      [](Plan& p) { p.types[0].by_demand = true; },
      [](Plan& p) { p.types[0].ops[1].skipped = true; },
      [](Plan& p) {
        p.types[0].demand_steps = {{0, {1}, {}}};
      },
      [](Plan& p) { p.regions.pop_back(); },
      [](Plan& p) { p.regions[0].last_scope = "blocks.1"; },
      [](Plan& p) {
        p.hidden.opaque_functions = {{"a:B", {}}};
      },
      [](Plan& p) {
        p.hidden.opaque_functions = {{"a:B", std::vector<int>{0}}};
      },
      [](Plan& p) {
        p.hidden.silent_writers = {{"lib::a", {0}}};
      },
      [](Plan& p) { p.hidden.kept_ops = {"lib::a"}; },
      [](Plan& p) { p.other_shapes = plan_of_two_shapes().other_shapes; },
      [](Plan& p) {
        p.other_shapes = plan_of_two_shapes().other_shapes;
        p.other_shapes[0].types[0].ops[0].treatment = Treatment::kSave;
      },
      [](Plan& p) {
        p.other_shapes = plan_of_two_shapes().other_shapes;
        p.other_shapes.push_back(p.other_shapes[0]);
      },
  };
  std::vector<std::string> hashes = {plan_sha256(small_plan())};
  for (const auto& change : changes) {
    Plan plan = small_plan();
    change(plan);
    const std::string hash = plan_sha256(plan);
    CHECK(std::find(hashes.begin(), hashes.end(), hash) == hashes.end());
    hashes.push_back(hash);
  }
}

TEST_CASE("a plan for one input shape is written without other_shapes and keeps its old hash") {
  CHECK_FALSE(plan_to_json(small_plan()).contains("other_shapes"));
  CHECK(plan_sha256(small_plan()) ==
        "c349aee951717009171426dc6d45c14bb67f8174ddecd283935ded19156b8b49");
}

TEST_CASE("a plan for several input shapes is read back unchanged and fits the schema") {
  const Plan plan = plan_of_two_shapes();
  const Json json = plan_to_json(plan);
  CHECK(json["other_shapes"][0]["layers"].dump() == R"([{"type":0,"layers":"0, 1","regions":2}])");
  CHECK(plan_from_json(parse_json(json.dump(), "plan")) == plan);
  CHECK(testing::schema_error(json, "plan") == std::nullopt);
}

const HiddenEffects kEffects = {
    {{"lib.ops:Rotary", std::vector<int>{1}}}, {{"lib::scale", {2}}}, {"lib::noisy"}};

TEST_CASE("the JSON of a plan lists the hidden effects of all input shapes at the top level") {
  Plan plan = plan_of_two_shapes();
  const Json plain = plan_to_json(plan);
  for (const char* key : {"opaque_functions", "silent_writers", "kept_ops"}) {
    CHECK_FALSE(plain.contains(key));
  }
  plan.hidden = kEffects;
  const Json json = plan_to_json(plan);
  CHECK(json["opaque_functions"].dump() == R"([{"name":"lib.ops:Rotary","overwrites":[1]}])");
  CHECK_FALSE(json["other_shapes"][0].contains("kept_ops"));
  CHECK(plan_from_json(parse_json(json.dump(), "plan")) == plan);
  CHECK(testing::schema_error(json, "plan") == std::nullopt);
  for (const Plan& shape : plans_of_shapes(plan)) CHECK(shape.hidden == kEffects);
  CHECK(plan_of_trace(plan, "padded").hidden == kEffects);
  CHECK(plan_of_trace(plan, "another model's").hidden == kEffects);
}

TEST_CASE("descriptive fields do not change the hash of a plan for several input shapes") {
  Plan plan = plan_of_two_shapes();
  const std::string hash = plan_sha256(plan);
  plan.other_shapes[0].policy = "other words";
  plan.other_shapes[0].types[0].ops[0].reason = "other words";
  plan.other_shapes[0].regions[0].layers.clear();
  CHECK(plan_sha256(plan) == hash);
}

TEST_CASE("the plan for an input shape is found by the hash of the shape's trace") {
  const Plan plan = plan_of_two_shapes();
  const std::vector<Plan> shapes = plans_of_shapes(plan);
  REQUIRE(shapes.size() == 2);
  CHECK(shapes[0].other_shapes.empty());
  CHECK(shapes[0].types == plan.types);
  CHECK(shapes[1].types == plan.other_shapes[0].types);
  CHECK(plan_of_trace(plan, "padded") == shapes[1]);
  CHECK(plan_of_trace(plan, "unpadded") == shapes[0]);
  CHECK(plan_of_trace(plan, "another model's") == shapes[0]);
}

TEST_CASE(
    "the reader of plans accepts unknown keys of a newer minor version, but rejects other major "
    "versions") {
  Json json = plan_to_json(small_plan());
  json["schema"] = "rematch.plan/1.4";
  json["types"][0]["ops"][0]["a_later_idea"] = 1;
  json.erase("layers");
  CHECK(plan_from_json(json) == small_plan());
  CHECK(testing::schema_error(json, "plan") == std::nullopt);
  json["schema"] = "rematch.plan/2.0";
  CHECK_THROWS_AS(plan_from_json(json), FormatError);
}

TEST_CASE("the error for a malformed plan gives the place of the mistake") {
  struct Row {
    std::function<void(Json&)> make;
    std::string message;
  };
  const Row rows[] = {
      {[](Json& j) { j["types"][0]["ops"][1]["treatment"] = "safe"; },
       "types[0].ops[1].treatment: 'safe' is not one of save, recompute, offload"},
      {[](Json& j) { j["regions"][1]["type"] = 1; },
       "regions[1].type: 1 is out of range; allowed: 0 to 0"},
      {[](Json& j) { j["types"] = Json::array(); }, "regions[0].type: refers to a type"},
      {[](Json& j) { j["types"][0]["ops"][0].erase("bytes"); },
       "types[0].ops[0]: key \"bytes\" is missing"},
      {[](Json& j) { j["types"][0]["ops"][0]["bytes"] = -1; },
       "types[0].ops[0].bytes: -1 is out of range"},
      {[](Json& j) {
         j["dimensions"] = {{"dim", "wide"}};
       },
       "dimensions.dim: found \"wide\""},
      {[](Json& j) {
         j["types"][0]["demand_steps"] = {{{"pack", -1}}};
       },
       "types[0].demand_steps[0].pack: -1 is out of range"},
      {[](Json& j) { j["other_shapes"] = 1; }, "other_shapes"},
      {[](Json& j) { j["kept_ops"] = {"noisy"}; }, "kept_ops[0]: 'noisy' is not a name"},
      {[](Json& j) { j["other_shapes"][0]["regions"][1]["type"] = 1; },
       "other_shapes[0].regions[1].type: 1 is out of range; allowed: 0 to 0"},
      {[](Json& j) { j["other_shapes"][0]["types"] = Json::array(); },
       "other_shapes[0].regions[0].type: refers to a type"},
      {[](Json& j) { j["other_shapes"][0].erase("trace_sha256"); },
       "other_shapes[0]: key \"trace_sha256\" is missing"},
      {[](Json& j) { j["other_shapes"][0]["types"][0]["ops"][0]["treatment"] = "safe"; },
       "other_shapes[0].types[0].ops[0].treatment: 'safe' is not one of"},
      {[](Json& j) {
         j["other_shapes"][0]["types"][0]["offload_inputs"] = {{{"op", 3}, {"argument", 0}}};
       },
       "other_shapes[0].types[0].offload_inputs[0].op: 3 is out of range"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    Json json = plan_to_json(plan_of_two_shapes());
    row.make(json);
    CHECK_THROWS_AS(plan_from_json(json), FormatError);
    CHECK_THROWS_WITH(plan_from_json(json), Contains(row.message));
  }
}

TEST_CASE("the plan schema rejects a file that the reader rejects") {
  const Json bad = read_json_file(testing::in_tree("tests/policies/plan/bad_plan.json"));
  CHECK(testing::schema_error(bad, "plan").has_value());
  CHECK_THROWS_WITH(plan_from_json(bad), Contains("types[0].ops[0].treatment"));
}

TEST_CASE("a plan that offloads a value that cannot be kept on the host is rejected") {
  for (const char* op : {"aten::empty.memory_format", "_c10d_functional::all_reduce"}) {
    Json json = plan_to_json(small_plan());
    json["types"][0]["ops"][0]["name"] = op;
    CHECK_NOTHROW(plan_from_json(json));
    json["types"][0]["ops"][0]["treatment"] = "offload";
    CHECK_THROWS_WITH(plan_from_json(json),
                      Contains("types[0]: op " + std::string(op) +
                               " (scope ffn) cannot be kept on the host; write \"save\" for it"));
  }
}

// Returns stores in which the host store is inexact, as if it rounded the values that it keeps.
std::array<StoreTraits, kStores.size()> with_inexact_host() {
  auto stores = kStores;
  stores.at(1).is_exact = false;
  return stores;
}

TEST_CASE("a plan is inexact if it uses a store that does not preserve bits") {
  const auto inexact = with_inexact_host();
  Plan kept = small_plan();
  CHECK(inexact_store(kept, inexact) == "");
  Plan result = small_plan();
  result.types[0].ops[1].treatment = Treatment::kOffload;
  CHECK(inexact_store(result) == "");
  CHECK(inexact_store(result, inexact) == "offload");
  Plan input = small_plan();
  input.types[0].stored_inputs[Store::kHost] = {{0, 0}};
  CHECK(inexact_store(input, inexact) == "offload");
  kept.other_shapes = {input};  // a plan is inexact if any of its shapes is inexact
  CHECK(inexact_store(kept, inexact) == "offload");
}

TEST_CASE("treatments and schedules convert to names and back") {
  for (const Treatment treatment : {Treatment::kSave, Treatment::kRecompute, Treatment::kOffload}) {
    CHECK(treatment_from_string(to_string(treatment)) == treatment);
  }
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    CHECK(from_string<Schedule>(to_string(schedule)) == schedule);
  }
  CHECK(to_string(Schedule::kWholeRegion) == "whole_region");
  CHECK_FALSE(treatment_from_string("keep").has_value());
}

}  // namespace
}  // namespace rematch
