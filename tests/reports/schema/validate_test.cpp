#include "reports/schema/validate.h"

#include <algorithm>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

Json report_json() {
  return report_to_json(Report{testing::sample_provenance(),
                               {testing::sample_point("none"), testing::sample_oom("full")},
                               {}});
}

// Reads and validates a file. Returns the error, or "valid".
std::string error_of_file(const std::string& name) {
  const std::string path = testing::in_tree("tests/reports/fixtures/") + name;
  try {
    return validate(read_json_file(path)).value_or("valid");
  } catch (const FormatError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the built-in schemas of reports and points are valid JSON") {
  const std::vector<std::string_view> kinds = schema_kinds();
  for (const char* kind : {"report", "point"}) {
    CHECK(std::find(kinds.begin(), kinds.end(), kind) != kinds.end());
  }
  for (const std::string_view kind : kinds) {
    CAPTURE(kind);
    CHECK_NOTHROW(parse_json(schema_text(kind).value(), std::string(kind)));
  }
  CHECK_FALSE(schema_text("nonsense"));
}

TEST_CASE("each committed schema equals the built-in schema") {
  for (const std::string_view kind : schema_kinds()) {
    CAPTURE(kind);
    const std::string path =
        testing::in_tree("reports/schema/") + std::string(kind) + ".schema.json";
    CHECK(read_json_file(path) == parse_json(schema_text(kind).value(), std::string(kind)));
  }
}

TEST_CASE("the error for a value that no schema allows is one line with its path") {
  const Json good = report_json();
  REQUIRE(validate(good) == std::nullopt);
  struct Damage {
    const char* pointer;
    Json value;
    const char* line;  // start of the error message
  };
  const std::vector<Damage> damages = {
      {"/points/0/status", "exploded",
       "points[0].status: found \"exploded\"; expected one of ok, oom, timeout"},
      {"/points/0/memory/peak_allocated_bytes", -1,
       "points[0].memory.peak_allocated_bytes: found -1; expected a number at least 0"},
      {"/points/1/memory/timeline", "none",
       "points[1].memory.timeline: found \"none\"; expected an object or null"},
      {"/points/0/counts/forward/matmul", 0.5,
       "points[0].counts.forward.matmul: found 0.5; expected a whole number"},
      {"/points/0/time/step_ratio/verdict", "great", "points[0].time.step_ratio.verdict: "},
      {"/points/0/time/step_interval_ns", Json::array({1}), "points[0].time.step_interval_ns: "},
      {"/points/0/steps/0/loss_bits", "3fc00000",
       "points[0].steps[0].loss_bits: found \"3fc00000\"; expected text of the form ^0x"},
      {"/points/0/key", "short", "points[0].key: found \"short\""},
      {"/environment/cpu_cores", 0, "environment.cpu_cores: found 0; expected a number at least 1"},
      {"/seed", 18014398509481984, "seed: found 18014398509481984"},
      {"/points", Json::object(), "points: found an object; expected a list"},
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.pointer);
    Json json = good;
    json[Json::json_pointer(damage.pointer)] = damage.value;
    const std::optional<std::string> error = validate(json);
    REQUIRE(error);
    CHECK_THAT(*error, Catch::StartsWith(damage.line));
    CHECK(error->find('\n') == std::string::npos);
  }
}

TEST_CASE("the error for a missing required key names the key") {
  for (const char* pointer :
       {"", "/environment", "/points/0", "/points/0/identity", "/points/0/memory", "/points/0/time",
        "/points/0/parity", "/points/0/steps/0", "/points/0/effect", "/points/1/failure"}) {
    const Json good = report_json();
    const Json object = good.at(Json::json_pointer(pointer));
    int named = 0;
    for (const auto& [name, member] : object.items()) {
      if (name == "schema") continue;
      CAPTURE(pointer, name);
      Json json = good;
      json.at(Json::json_pointer(pointer)).erase(name);
      const std::optional<std::string> error = validate(json);
      if (!error) continue;  // the schema accepts this, because the member is optional
      CHECK_THAT(*error, Catch::Contains("'" + name + "'"));
      ++named;
    }
    CHECK(named >= 3);
  }
}

TEST_CASE("files with unknown keys are valid, but files of an unknown kind or version are not") {
  Json json = report_json();
  json["points"][0]["colour"] = "red";
  CHECK(validate(json) == std::nullopt);
  json["schema"] = "rematch.report/1.9";
  CHECK(validate(json) == std::nullopt);
  json["schema"] = "rematch.report/2.0";
  CHECK_THAT(
      validate(json).value(),
      Catch::Equals("schema: found \"rematch.report/2.0\"; this build reads 'rematch.report/1.x'"));
  json["schema"] = "rematch.novel/1.0";
  CHECK_THAT(validate(json).value(), Catch::StartsWith("schema: no kind 'novel'"));
  json["schema"] = 1;
  CHECK_THAT(validate(json).value(), Catch::StartsWith("schema: missing or not of the form"));
  CHECK_THAT(validate(Json::array()).value(), Catch::Contains("expected a JSON object"));
}

// Each file is the good file with a single mistake.
TEST_CASE("the error for each committed bad file is one line with the path of the mistake") {
  CHECK(error_of_file("point.json") == "valid");
  struct Bad {
    const char* file;
    const char* message;  // a part of the error message
  };
  for (const Bad& bad :
       {Bad{"bad_version.json", "schema: found \"rematch.point/2.0\""},
        Bad{"bad_nan.json", "malformed JSON at line "},
        Bad{"bad_missing_key.json", "point.memory: key '"},
        Bad{"bad_type.json", "point.memory.peak_allocated_bytes: found \"100 MiB\""},
        Bad{"bad_duplicate_key.json", "key \"status\" appears twice"},
        Bad{"bad_truncated.json", "malformed JSON at line "}, Bad{"bad_empty.json", "is empty"}}) {
    CAPTURE(bad.file);
    const std::string error = error_of_file(bad.file);
    CHECK_THAT(error, Catch::Contains(bad.message));
    CHECK(error.find('\n') == std::string::npos);
  }
}

}  // namespace rematch
