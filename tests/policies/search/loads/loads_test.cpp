#include "policies/search/loads/loads.h"

#include "policies/base/json.h"
#include "tests/support/schema_fields.h"

namespace rematch {
namespace {

LoadPlan plan_of(std::int64_t load, double rate) {
  return {load,
          rate,
          rate * 2,
          std::chrono::milliseconds(load),
          Bytes{load << 20},
          load * 10,
          "layers 0-3: keep all"};
}

LoadsRecord sample_loads() {
  LoadsRecord record;
  record.model = "llama_small";
  record.dimensions = {{"batch", 1}};
  record.dtype = "float32";
  record.device = "h100";
  record.world = 2;
  record.num_batches = 2;
  record.budget = Bytes{1 << 30};
  record.dimension = "batch";
  record.least = 1;
  record.most = 8;
  record.tried = {plan_of(1, 100), plan_of(2, 150), LoadPlan{4, {}, {}, {}, {}, {}, {}}};
  record.largest = 2;
  record.best = 2;
  return record;
}

TEST_CASE("the schema of loads files has exactly the fields of the C++ structs") {
  testing::check_fields(LoadsRecord{}, testing::SchemaPlace("loads"), "loads", {"schema"});
}

TEST_CASE("a loads file reads back unchanged") {
  const Json json = loads_to_json(sample_loads());
  CHECK(validate(json).value_or("valid") == "valid");
  CHECK(loads_to_json(loads_from_json(json)) == json);
  CHECK(json.at("tried").at(1).at("predicted_tokens_per_second_all_ranks") == 300.0);
  CHECK(json.at("tried").at(2).at("load") == 4);
  CHECK(json.at("tried").at(2).at("saves").is_null());
}

TEST_CASE("the error for a malformed loads file gives the path of the mistake") {
  struct Damage {
    const char* pointer;
    Json value;
    const char* message;
  };
  const std::vector<Damage> damages = {
      {"/schema", "rematch.loads/2.0", "rematch.loads/2.0"},
      {"/best", 4, "best: must be a load in \"tried\" that fits"},
      {"/largest_that_fits", 3, "largest_that_fits: must be a load in"},
      {"/best", nullptr, "must both be loads or both be null"},
      {"/num_batches", 0, "num_batches"},
      {"/world", 1, "world"},
      {"/tried/0/predicted_step_time_ns", nullptr, "tried[0]: has only some of a plan's figures"},
      {"/optimizer", "adamax", "found 'adamax'; known are"}};
  const Json good = loads_to_json(sample_loads());
  for (const Damage& damage : damages) {
    CAPTURE(damage.pointer);
    Json bad = good;
    bad[Json::json_pointer(damage.pointer)] = damage.value;
    CHECK_THROWS_WITH(loads_from_json(bad), Catch::Contains(damage.message));
  }
}

}  // namespace
}  // namespace rematch
