#include "policies/base/json.h"

#include <catch2/catch.hpp>

namespace rematch {
namespace {

using Catch::Contains;
using Catch::Equals;

TEST_CASE(
    "a JSON reader accepts files of its own kind and major version, and of any minor version") {
  CHECK_NOTHROW(require_schema(Json{{"schema", "rematch.plan/1.0"}}, "plan"));
  CHECK_NOTHROW(require_schema(Json{{"schema", "rematch.plan/1.27"}}, "plan"));
}

TEST_CASE("a JSON file of another kind, of another major version or without a schema is rejected") {
  for (const char* schema :
       {"rematch.plan/2.0", "rematch.plan/10.0", "rematch.trace/1.0", "rematch.plan/1",
        "rematch.plan/1.", "rematch.plan/1.x", "plan/1.0", ""}) {
    CAPTURE(schema);
    CHECK_THROWS_WITH(
        require_schema(Json{{"schema", schema}}, "plan"),
        Contains(std::string("'") + "rematch.plan/1.x'") && Contains(Json(schema).dump()));
  }
  CHECK_THROWS_WITH(require_schema(Json::object(), "plan"),
                    "file has no \"schema\" key; this build reads 'rematch.plan/1.x'");
  CHECK_THROWS_AS(require_schema(Json{{"schema", 1}}, "plan"), FormatError);
  CHECK_THROWS_AS(require_schema(Json::array(), "plan"), FormatError);
}

TEST_CASE("the error for malformed JSON gives the path of the mistake") {
  const Json json = {{"types", {{{"ops", {{{"bytes", -1}, {"name", 7}}}}}}}};
  const JsonField op = JsonField(json).at("types").at(0).at("ops").at(0);
  CHECK_THROWS_WITH(op.at("bytes").integer(0, 9),
                    "types[0].ops[0].bytes: -1 is out of range; allowed: 0 to 9");
  CHECK_THROWS_WITH(op.at("name").string(), "types[0].ops[0].name: found 7; expected a string");
  CHECK_THROWS_WITH(op.at("scope"), "types[0].ops[0]: key \"scope\" is missing");
  CHECK_THROWS_WITH(op.elements(), "types[0].ops[0]: found an object; expected a list");
  CHECK_FALSE(op.find("scope").has_value());
}

TEST_CASE("an error in a part of a document gives the path from the root") {
  const Json part = {{"name", 7}};
  const std::string place = "points[3]";
  CHECK_THROWS_WITH(JsonField(part, &place).at("name").string(),
                    "points[3].name: found 7; expected a string");
  CHECK_THROWS_WITH(JsonField(part, &place).at("key"), "points[3]: key \"key\" is missing");
}

TEST_CASE("members of a JSON object keep their order and are not copied while the object grows") {
  Json::object_t object;
  const Json& list = add_member(object, "list", {1, 2, 3});
  const Json* const elements = list.get_ref<const Json::array_t&>().data();
  for (int index = 0; index < 9; ++index) add_member(object, std::to_string(index), index);
  CHECK(Json(object).dump() ==
        R"({"list":[1,2,3],"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8})");
  CHECK(object.front().second.get_ref<const Json::array_t&>().data() == elements);
}

TEST_CASE("a number is read only if the type can hold it") {
  const Json json = {1.5, 1.0, "1", std::uint64_t{1} << 63, std::int64_t{1} << 40, true};
  const JsonField list(json);
  CHECK_THROWS_WITH(list.at(0).integer(), Contains("expected a whole number"));
  CHECK_THROWS_AS(list.at(1).integer(), FormatError);
  CHECK_THROWS_AS(list.at(2).number(), FormatError);
  CHECK_THROWS_WITH(list.at(3).integer(), Contains("9223372036854775808 is out of range"));
  CHECK_THROWS_WITH(list.at(4).integer32(), Contains("out of range"));
  CHECK(list.at(4).integer() == std::int64_t{1} << 40);
  CHECK(list.at(1).number() == 1.0);
  CHECK_THROWS_AS(list.at(5).integer(), FormatError);
  CHECK_THROWS_WITH(list.at(6), "has 6 elements; too few");
}

TEST_CASE("the error for an unknown key suggests the nearest known key") {
  const Json json = {{"save", 1}, {"early_stpo", true}};
  CHECK_THROWS_WITH(JsonField(json).require_known_keys({"save", "early_stop"}),
                    "unknown key \"early_stpo\"; did you mean 'early_stop'?");
  CHECK_NOTHROW(JsonField(json).require_known_keys({"save", "early_stop", "early_stpo"}));
}

TEST_CASE("an error shortens a long value in the middle") {
  std::string names = "layers.0.wq";
  for (int layer = 1; layer < 10; ++layer) names += ",layers." + std::to_string(layer) + ".wq";
  const Json json = {{"save", names}};
  CHECK_THROWS_WITH(JsonField(json).at("save").number(),
                    Contains("found \"layers.0.wq,layers.1.wq,...,layers.8.wq,layers.9.wq\";"));
}

TEST_CASE("the error for malformed JSON is one short line, whatever the file contains") {
  const Json json = {{"name", std::string(500, 'x') + "\n\xFF"}};
  try {
    JsonField(json).at("name").boolean();
    FAIL("a string was taken for a boolean");
  } catch (const FormatError& error) {
    const std::string message = error.what();
    CHECK(message.size() < 150);
    CHECK(message.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace rematch
