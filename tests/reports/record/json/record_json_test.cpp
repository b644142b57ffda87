#include "reports/record/json/record_json.h"

#include <limits>
#include <set>
#include <string>

#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "reports/record/json/point_json.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

using testing::sample_oom;
using testing::sample_point;
using testing::sample_provenance;

Report sample_report() {
  return Report{sample_provenance(), {sample_point("none"), sample_oom("full")}, {}};
}

// Every member differs from its default, so that the test notices a member that is not written or
// not read.
void check_equal(const PointRecord& a, const PointRecord& b) {
  CHECK(a.identity == b.identity);
  CHECK(a.policy == b.policy);
  CHECK(a.device == b.device);
  CHECK(a.status == b.status);
  CHECK(a.warm_up_steps == b.warm_up_steps);
  CHECK(a.reason == b.reason);
  CHECK(a.failure == b.failure);
  CHECK(a.counts == b.counts);
  CHECK(a.predicted_counts == b.predicted_counts);
  CHECK(a.memory == b.memory);
  CHECK(a.time == b.time);
  CHECK(a.steps == b.steps);
  CHECK(a.parity == b.parity);
  CHECK(a.effect == b.effect);
  CHECK(a.step_flops == b.step_flops);
  CHECK(a.implied_flops_per_second == b.implied_flops_per_second);
  CHECK(a.most_flops_per_second == b.most_flops_per_second);
  CHECK(a.sheet_flops_per_second == b.sheet_flops_per_second);
  CHECK(a.model_flops_utilization == b.model_flops_utilization);
  CHECK(a.hardware_flops_utilization == b.hardware_flops_utilization);
  CHECK(a.kernels == b.kernels);
  CHECK(a.kernels_reason == b.kernels_reason);
}

std::string error_of_text(const std::string& text) {
  try {
    report_from_text(text, "file.json");
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of(const Json& json) {
  try {
    report_from_json(json);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a report reads back from its file unchanged") {
  const testing::ScratchFolder folder;
  const Report report = sample_report();
  write_json_file(folder.file("report.json"), report_to_json(report));
  const Json json = read_json_file(folder.file("report.json"));
  CHECK(validate(json) == std::nullopt);
  const Report read = report_from_json(json);
  REQUIRE(read.points.size() == 2);
  check_equal(read.points[0], report.points[0]);
  check_equal(read.points[1], report.points[1]);
  CHECK(read.points[0].unknown.empty());
  CHECK(read.unknown.empty());
  CHECK(read.provenance.environment == report.provenance.environment);
  CHECK(read.provenance.command == report.provenance.command);
  CHECK(report_to_json(read) == json);
}

TEST_CASE("the note of a predicted peak is kept and written only if it is not empty") {
  Report report = sample_report();
  CHECK_FALSE(report_to_json(report)["points"][0]["memory"].contains("predicted_peak_note"));
  report.points[0].memory->predicted_peak_note = "temporaries not measured: a bound";
  const Json json = report_to_json(report);
  CHECK(json["points"][0]["memory"]["predicted_peak_note"] == "temporaries not measured: a bound");
  CHECK(validate(json) == std::nullopt);
  check_equal(report_from_json(json).points[0], report.points[0]);
}

// The three points have different structures. The second point has a key that this build does not
// know.
TEST_CASE(
    "a report that is read from its text point by point equals the report that is read as a "
    "whole") {
  Json json = report_to_json(sample_report());
  for (const char* policy : {"alias", "another"}) {
    json["points"].push_back(json["points"][0]);
    json["points"].back()["policy"] = policy;
  }
  json["points"][2]["memory"]["peak_colour"] = Json{{"red", 1}};
  json["humidity_ratio"] = 0.4;
  // Keys of a newer version may be written in a different order.
  const auto read = [](const Json& report) {
    return nlohmann::json(report_to_json(report_from_text(report.dump(2), "file.json")));
  };
  CHECK(read(json) == nlohmann::json(json));
  Json schema_last = json;
  schema_last.erase("schema");
  schema_last["schema"] = json["schema"];
  CHECK(read(schema_last) == nlohmann::json(json));
  json["points"] = Json::array();
  CHECK(read(json) == nlohmann::json(json));
}

TEST_CASE(
    "a report is rejected if redundant values of a point disagree, or if a point occurs twice") {
  const Json good = report_to_json(sample_report());
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return error_of_text(bad.dump());
  };
  CHECK(refusal("/points/0/steps/0/loss", 1.5000001) ==
        "file.json: points[0].steps[0].loss: differs from \"loss_bits\"; was the file edited?");
  CHECK_THAT(refusal("/points/0/steps/0/loss_bits", "0x3fc00001"),
             Catch::Contains("steps[0].loss: differs from"));
  CHECK_THAT(refusal("/points/0/steps/0/loss", nullptr),
             Catch::Contains("steps[0].loss: differs from"));
  CHECK_THAT(refusal("/points/0/steps/1/loss", 2), Catch::Contains("steps[1].loss: differs from"));
  CHECK_THAT(refusal("/points/0/steps/0/loss_bits", "0x3f"),
             Catch::Contains("are not the bits of a float32 or float64"));
  CHECK_THAT(refusal("/points/0/time/step_median_ns", 30000000),
             Catch::Contains("step_median_ns: is not the median of \"samples_ns\""));
  CHECK_THAT(refusal("/points/0/time/samples_ns/1/0", 0),
             Catch::Contains("samples_ns[1][0]: must be above 0, because a step takes time"));
  CHECK_THAT(refusal("/points/1", good["points"][0]),
             Catch::Contains("points[1]: repeats points[0], none;"));
}

TEST_CASE("the error for damaged text is one line with the file and the path") {
  Json json = report_to_json(sample_report());
  json["points"][1]["memory"]["parameter_bytes"] = "many";
  CHECK(error_of_text(json.dump()) ==
        "file.json: points[1].memory.parameter_bytes: found \"many\"; expected a whole number");
  json["schema"] = "rematch.report/2.0";
  CHECK_THAT(error_of_text(json.dump()),
             Catch::Contains("file.json: file has schema \"rematch.report/2.0\""));
  json.erase("schema");
  CHECK_THAT(error_of_text(json.dump()), Catch::Contains("file.json: file has no \"schema\" key"));
  json = report_to_json(sample_report());
  json["seed"] = -1;
  CHECK_THAT(error_of_text(json.dump()), Catch::Contains("file.json: seed: -1 is out of range"));
  const std::string text = report_to_json(sample_report()).dump();
  CHECK_THAT(error_of_text(text.substr(0, text.size() - 1)),
             Catch::Contains("file.json: malformed JSON at line 1"));
  json.erase("points");
  CHECK_THAT(error_of_text(json.dump()), Catch::Contains("file.json: key \"points\" is missing"));
}

TEST_CASE("a report without newer keys is read and keeps its fingerprint") {
  Json json = report_to_json(sample_report());
  for (const char* name :
       {"cuda_driver", "multiprocessors", "power_limit_mw", "sm_clock_most_mhz", "ecc", "mig",
        "pcie_current_generation", "pcie_current_width", "other_processes", "pci_bus_id",
        "persistence_mode", "default_power_limit_mw", "cupti"}) {
    json["environment"].erase(name);
  }
  json.erase("program_sha256");
  for (const char* name :
       {"kernels", "kernels_reason", "most_flops_per_second", "sheet_flops_per_second",
        "model_flops_utilization_ratio", "hardware_flops_utilization_ratio"}) {
    json["points"][0].erase(name);
  }
  json["points"][0]["time"].erase("device_state");
  json["points"][0]["time"].erase("control");
  json["points"][0]["time"].erase("attention_backend");
  json["points"][0]["time"].erase("starts");
  json["points"][0]["memory"].erase("holders_by_phase");
  CHECK(validate(json) == std::nullopt);
  const Report read = report_from_json(json);
  CHECK(fingerprint(read.provenance.environment) == json["fingerprint"]);
  CHECK_FALSE(read.points[0].kernels.has_value());
  CHECK_FALSE(read.points[0].time->device_state.has_value());
  CHECK_FALSE(read.points[0].time->control.has_value());
  CHECK(read.points[0].time->starts.empty());
  CHECK_FALSE(read.provenance.program_sha256.has_value());
  CHECK(read.points[0].memory->holders_by_phase.empty());
}

TEST_CASE("an older report, in which rounds are called blocks, is read") {
  Report report = sample_report();
  report.points[0].time->quality->verdict = "few_rounds";
  report.points[0].time->device_state->round_repeats = 2;
  Json json = report_to_json(report);
  Json& time = json["points"][0]["time"];
  time["quality"]["verdict"] = "few_blocks";
  time["device_state"]["block_repeats"] = 2;
  time["device_state"].erase("round_repeats");
  CHECK(validate(json) == std::nullopt);
  const Report read = report_from_json(json);
  CHECK(read.points[0].time->quality->verdict == "few_rounds");
  CHECK(read.points[0].time->device_state->round_repeats == 2);
}

TEST_CASE("a device state without a newer key is read, and the key's value stays absent") {
  Json json = report_to_json(sample_report());
  json["points"][0]["time"]["device_state"].erase("round_repeats");
  CHECK(validate(json) == std::nullopt);
  const Report read = report_from_json(json);
  CHECK_FALSE(read.points[0].time->device_state->round_repeats.has_value());
  CHECK(report_to_json(read)["points"][0]["time"]["device_state"]["round_repeats"].is_null());
}

TEST_CASE("a point file reads back unchanged") {
  const testing::ScratchFolder folder;
  const PointFile file{sample_provenance(), sample_point("attn_only"), {}};
  write_json_file(folder.file("point.json"), point_file_to_json(file));
  const Json json = read_json_file(folder.file("point.json"));
  CHECK(validate(json) == std::nullopt);
  const PointFile read = point_file_from_json(json);
  check_equal(read.point, file.point);
  CHECK(point_file_to_json(read) == json);
}

TEST_CASE("a point with only its identity is written and read") {
  PointRecord point;
  point.identity = sample_point().identity;
  point.policy = "none";
  point.device = "cpu";
  point.status = PointStatus::kSkipped;
  const Json json = report_to_json(Report{Provenance{}, {point}, {}});
  CHECK(validate(json) == std::nullopt);
  check_equal(report_from_json(json).points.front(), point);
}

// Reports from before the key was added do not have it.
TEST_CASE("a point stores how many warm-up steps ran before the measurement") {
  Report report = sample_report();
  report.points[0].warm_up_steps = 2;
  const std::string text = report_to_json(report).dump();
  const Report read = report_from_text(text, "file.json");
  CHECK(read.points.at(0).warm_up_steps == 2);
  CHECK_FALSE(read.points.at(1).warm_up_steps.has_value());
}

TEST_CASE("a value that is not finite is written as null, and its bits are written separately") {
  PointRecord point = sample_point();
  point.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
  point.steps[0].loss_bits = "0x7fc00000";
  point.implied_flops_per_second = std::numeric_limits<double>::infinity();
  const Json json = point_to_json(point);
  CHECK(json["steps"][0]["loss"].is_null());
  CHECK(json["steps"][0]["loss_bits"] == "0x7fc00000");
  CHECK(json["implied_flops_per_second"].is_null());
}

// The key is computed only from the canonical JSON of the identity.
TEST_CASE("a point's key depends on its whole identity, but on no measurement") {
  const PointIdentity identity = sample_point().identity;
  const std::string key = point_key(identity);
  PointRecord measured = sample_point();
  measured.memory->peak_allocated = Bytes{1};
  CHECK(point_to_json(measured)["key"] == key);

  const Json json = to_value(identity);
  CHECK(json.size() == 14);
  for (const auto& [name, member] : json.items()) {
    CAPTURE(name);
    Json other = json;
    other[name] = member.is_boolean()  ? Json(!member.get<bool>())
                  : member.is_number() ? Json(member.get<int>() + 1)
                  : member.is_object() ? Json{{"layers", 9}}
                  : name == "schedule" ? Json("whole_region")
                                       : Json(member.get<std::string>() + "x");
    PointIdentity changed;
    read_value(JsonField(other), changed);
    CHECK(point_key(changed) != key);
  }
}

TEST_CASE("the fingerprint ignores which card was used, but not properties that affect times") {
  const Environment environment = sample_provenance().environment;
  const std::string same = fingerprint(environment);
  Environment moved = environment;
  moved.hostname = "elsewhere";
  moved.sm_clock_mhz = 1980;
  moved.memory_clock_mhz = 2619;
  moved.pcie_current_generation = 1;
  moved.pcie_current_width = 8;
  moved.other_processes = 3;
  moved.pci_bus_id = "0000:99:00.0";
  moved.device_uuid = "GPU-other";
  moved.persistence_mode = false;
  moved.default_power_limit_mw = 500000;
  moved.cupti = "13.1.0";
  moved.variables.clear();
  CHECK(fingerprint(moved) == same);
  const std::set<std::string> of_the_moment = {
      "hostname",           "sm_clock_mhz",    "memory_clock_mhz", "pcie_current_generation",
      "pcie_current_width", "other_processes", "pci_bus_id",       "device_uuid",
      "persistence_mode",   "cupti",           "variables",        "default_power_limit_mw"};
  const std::set<std::string> numbers = {"cpu_cores",        "threads",         "pcie_generation",
                                         "pcie_width",       "multiprocessors", "power_limit_mw",
                                         "sm_clock_most_mhz"};
  const Json json = to_value(environment);
  for (const auto& [name, member] : json.items()) {
    if (of_the_moment.count(name) != 0) continue;
    CAPTURE(name);
    const bool is_number = name.ends_with("_bytes") || numbers.count(name) != 0;
    Json other = json;
    other[name] = "other";
    if (is_number) other[name] = 77;
    if (name == "ecc" || name == "mig") other[name] = true;
    Environment changed;
    read_value(JsonField(other), changed);
    CHECK(fingerprint(changed) != same);
  }
}

TEST_CASE("a time record has a start time of the command for every round, or for no round") {
  Report report = sample_report();
  TimeRecord& time = *report.points[0].time;
  time.starts.assign(time.samples.size(), "a1");
  report.provenance.program_sha256 = std::string(64, 'b');
  const Json json = report_to_json(report);
  CHECK(validate(json) == std::nullopt);
  const Report read = report_from_json(json);
  CHECK(read.points[0].time->starts == time.starts);
  CHECK(read.provenance.program_sha256 == report.provenance.program_sha256);
  time.starts.pop_back();
  CHECK_THAT(error_of_text(report_to_json(report).dump()),
             Catch::Contains("points[0].time.starts") && Catch::Contains("samples_ns has 2"));
}

TEST_CASE("unknown keys of a newer minor version keep their position") {
  Json json = report_to_json(sample_report());
  json["schema"] = "rematch.report/1.7";
  json["weather"] = "dry";
  json["environment"]["humidity_ratio"] = 0.4;
  json["points"][0]["memory"]["peak_colour"] = Json{{"red", 1}};
  json["points"][0]["memory"]["holders_by_phase"]["forward"]["ghosts"] = 3;
  json["points"][0]["memory"]["holders_by_phase"]["lunch"] = Json{{"parameters", 4}};
  json["points"][0]["steps"][1]["mood"] = "good";
  json["points"][0]["counts"]["forward"]["teleport"] = 3;
  json["points"][0]["identity"]["phase_of_moon"] = "full";
  json["points"][0]["key"] = canonical_sha256(json["points"][0]["identity"]);
  Json written = report_to_json(report_from_json(json));
  written["schema"] = json["schema"];
  CHECK(nlohmann::json(written) == nlohmann::json(json));
}

TEST_CASE("the error for another kind or version says which kind and version this build reads") {
  Json json = report_to_json(sample_report());
  json["schema"] = "rematch.report/2.0";
  CHECK_THAT(error_of(json), Catch::Contains("rematch.report/2.0"));
  CHECK_THAT(error_of(json), Catch::Contains("this build reads 'rematch.report/1.x'"));
  json["schema"] = "rematch.point/1.0";
  CHECK_THAT(error_of(json), Catch::Contains("rematch.point/1.0"));
}

TEST_CASE("the error for a malformed report is one line with the path") {
  const Json good = report_to_json(sample_report());
  REQUIRE(error_of(good) == "no error");
  struct Damage {
    const char* pointer;
    Json value;
    const char* message;  // a part of the error message
  };
  const std::vector<Damage> damages = {
      {"/points/1/status", "exploded", "points[1].status: 'exploded' is not one of ok"},
      {"/points/0/schedule", "on_demand ", "points[0].schedule: differs"},
      {"/points/0/identity/seed", 2, "points[0].key: does not match the hash of \"identity\""},
      {"/points/0/identity/schedule", "never", "points[0].identity.schedule: 'never'"},
      {"/points/0/memory/peak_allocated_bytes", "much", "points[0].memory.peak_allocated_bytes"},
      {"/points/0/memory/peak_phase", "lunch",
       "points[0].memory.peak_phase: 'lunch' is not one of forward"},
      {"/points/0/memory/timeline/phase", Json::array({0}), "op_index has 4"},
      {"/points/0/memory/timeline/phase/1", 9, "points[0].memory.timeline.phase[1]: 9"},
      {"/points/0/time/step_interval_ns", Json::array({1}), "it must have 2"},
      {"/points/0/time/samples_ns/1/0", 1.5, "points[0].time.samples_ns[1][0]"},
      {"/points/0/parity/loss_bits_equal", 1, "points[0].parity.loss_bits_equal"},
      {"/points/0/steps", Json::object(), "points[0].steps"},
      {"/environment/threads", "two", "environment.threads"},
  };
  for (const Damage& damage : damages) {
    CAPTURE(damage.pointer);
    Json json = good;
    json[Json::json_pointer(damage.pointer)] = damage.value;
    const std::string error = error_of(json);
    CHECK_THAT(error, Catch::Contains(damage.message));
    CHECK(error.find('\n') == std::string::npos);
  }
  Json json = good;
  json["points"][0]["parity"].erase("reference");
  CHECK_THAT(error_of(json), Catch::Contains("points[0].parity: key \"reference\" is missing"));
}

// With 300 points, the text is written in several parts.
TEST_CASE(
    "a report written point by point equals the text of its JSON for any content and number of "
    "points") {
  Report report;
  report.provenance = testing::sample_provenance();
  CHECK(report_to_text(report) == report_to_json(report).dump(2) + "\n");
  report.unknown["/newer"] = "[1, {\"points\": []}]";
  for (int index = 0; index < 300; ++index) {
    report.points.push_back(testing::sample_point("layers([" + std::to_string(index) + "])"));
    report.points.back().reason = "two\nlines, \"quoted\"";
    if (index != 0 && index != 1 && index != 299) continue;
    CHECK(report_to_text(report) == report_to_json(report).dump(2) + "\n");
  }
}

}  // namespace rematch
