// Every released version of every format has a file in tests/reports/fixtures/released, which later
// builds must still read. This command writes the missing files:
//   build/lite/tests/reports/released_test '[write]'
// An existing file is never overwritten.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "harness/sweep/comparison_plan.h"
#include "harness/sweep/sweep_file.h"
#include "policies/base/field_value.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/describe.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_json.h"
#include "policies/predict/device/ceilings.h"
#include "policies/predict/device/links.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/search/loads/loads.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/compare/compare.h"
#include "reports/gate/gate.h"
#include "reports/gate/gate_curves.h"
#include "reports/record/json/record_json.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"
#include "tests/support/made_up_ceilings.h"
#include "tests/support/made_up_links.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_trace.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

struct Format {
  std::string kind;
  std::vector<std::string> versions;  // released versions, the newest last
  std::function<Json()> sample;       // a sample of the newest version
  std::function<Json(const Json&)> read_and_write;
};

std::string fixture(const std::string& kind, const std::string& version) {
  return in_tree("tests/reports/fixtures/released/") + kind + "-" + version + ".json";
}

Trace small_trace() {
  return random_trace(3,
                      {.layers = 2, .block_types = 2, .ops_per_block = 5, .ops_outside_blocks = 2});
}

Policy save_mm() { return std::get<Policy>(parse_policy("save_mm")); }

Report sample_report() {
  Report report{sample_provenance(), {sample_point("none"), sample_oom("full")}, {}, {}};
  report.repeats.push_back(
      {point_key(report.points[0].identity), "none", PointStatus::kOk, "", report.points[0].steps});
  return report;
}

CurvesRecord gated_curves() {
  GateSettings settings;
  settings.max_loss_difference = 0.125;
  const auto gated =
      gate_curves({parse_loss_curve("step,loss\n0,5\n10,4.25\n", "mine.csv", {})},
                  {parse_loss_curve("step,loss\n0,5\n10,4\n", "base.csv", {})}, settings);
  return *std::get<GateRecord>(gated).curves;
}

Report slower_report() {
  Report report = sample_report();
  for (auto& round : report.points[0].time->samples) {
    for (auto& sample : round) sample *= 2;
  }
  return report;
}

GateSettings every_limit() {
  GateSettings settings;
  settings.loss = LossTier::kBitwise;
  settings.max_loss_difference = 0.001;
  settings.max_peak = Bytes{1 << 20};
  return settings;
}

FrontRecord sample_front() {
  const Trace trace = toy_llama({.layers = 2, .tokens = 64});
  const Profile profile = made_up_profile(trace, 3);
  FrontSearch search(trace, profile, {});
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.max_slowdown_ratio = 0.125;
  record.answer = search.lowest_within_slowdown(*record.max_slowdown_ratio);
  record.front = search.front(2, {std::get<Plan>(resolve(save_mm(), trace))});
  return record;
}

LoadsRecord sample_loads() {
  LoadsRecord record;
  record.model = "llama_small";
  record.dimensions = {{"batch", 1}, {"layers", 8}};
  record.dtype = "bfloat16";
  record.device = "h100";
  record.world = 4;
  record.num_batches = 2;
  record.budget = Bytes{1 << 30};
  record.dimension = "batch";
  record.least = 1;
  record.most = 2;
  record.git_commit = "9c90bfd";
  record.git_dirty = true;
  const LoadPlan plan{
      1, 1250.5, 2501, std::chrono::milliseconds(3), Bytes{1 << 20}, 40, "layers 0-7: keep all"};
  record.tried = {plan, LoadPlan{2, {}, {}, {}, {}, {}, {}}};
  record.largest = record.best = 1;
  return record;
}

Json sample_sweep() {
  return Json::parse(R"({"schema": "rematch.sweep/1.0", "run": ["--device", "cpu", "--steps", "2"],
    "groups": [{"model": "llama_small", "policies": ["none", "full", "attn_only"],
                "schedule": "both", "seeds": [0, 1], "repetitions": 1, "fixed": {"layers": 2},
                "axes": {"tokens": [32, 64], "batch": [1, 2]},
                "skip": [{"tokens": 64, "batch": 2}]}]})");
}

ComparisonPlan sample_sweep_plan() {
  ComparisonPlan plan{"", "1.0.0", "cpu", std::chrono::seconds(60), {}};
  plan.comparisons = sweep_from_json(sample_sweep()).comparisons;
  plan.comparisons.front().predicted = {Bytes{1 << 20}, Bytes{1 << 21}, std::chrono::seconds(3)};
  return plan;
}

// `rematch predict --json` prints a list of such predictions.
Json sample_prediction() {
  return Json::parse(R"({"schema": "rematch.prediction/1.0", "model": "llama_small",
    "policy": "fastvideo:ops", "status": "refused", "reason": "nothing in its regions matches"})");
}

// Commands print the formats below, and no command reads them.
Json unchanged(const Json& json) { return json; }

Json sample_list() {
  return Json::parse(R"json({"schema": "rematch.list/1.0",
    "policies": [{"name": "nth_first", "parameters": "(N)", "description": "recompute the blocks with i % N == 0",
                  "used_by": "FastVideo, HF Transformers"}],
    "models": [{"name": "llama_small", "description": "a Llama for tests"}]})json");
}

Json sample_systems() {
  return Json::parse(R"json({"schema": "rematch.systems/1.0", "modes": [
    {"system": "FastVideo", "mode": "fastvideo(selective_checkpointing=F)", "policy": null,
     "description": "recomputes a share of the blocks", "pitfall": "FastVideo never reads this flag",
     "schedule": "whole_region", "configuration": null, "versions": null,
     "where": "the trainer's command line", "source": "github.com/hao-ai-lab/FastVideo"},
    {"system": "torchtitan", "mode": "titan:full", "policy": "full_nostop",
     "description": "recomputes every block to its end", "pitfall": null, "schedule": "whole_region",
     "configuration": "[activation_checkpoint]\nmode = \"full\"", "versions": "until June 2026",
     "where": "the job's TOML", "source": "github.com/pytorch/torchtitan"}]})json");
}

Json sample_description() {
  const Trace trace = toy_llama({.layers = 2});
  Json json = describe_json(std::get<Plan>(resolve(save_mm(), trace)), trace, "a note");
  json["warnings"] = {"a warning"};
  return json;
}

Json sample_doctor() {
  return {{"schema", "rematch.doctor/1.0"},
          {"engine", "ok"},
          {"devices", {{"cpu", "ok"}, {"cuda", "this build has no CUDA"}}},
          {"kernel_counting", "this build has no CUDA"},
          {"environment", to_value(sample_provenance().environment)}};
}

Json sample_sweep_status() {
  return Json::parse(R"({"schema": "rematch.sweep_status/1.0",
    "plan": "634e6e3c0d3774278f0331f56be33ab347df4325a89b7b5dafc05c0dd5808202",
    "counts": {"done": 0, "failed": 1, "skipped": 0, "held": 1, "stale": 0, "free": 0},
    "predicted_time_left_ns": 3000000000, "predicted_time_left_of_workers_ns": 3000000000,
    "comparisons": [
      {"id": "0a1b", "model": "llama_small", "state": "held", "generation": 1, "host": "node1",
       "pid": 4711, "held_ns": 30000000000, "reason": ""},
      {"id": "0a1c", "model": "llama_small", "state": "failed", "generation": 2, "host": null,
       "pid": null, "held_ns": null, "reason": "out of memory"}]})");
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"trace",
       {"1.0", "1.1"},
       [] { return trace_to_json(small_trace()); },
       [](const Json& json) { return trace_to_json(trace_from_json(json)); }},
      {"profile",
       {"1.0", "1.1", "1.2"},
       [] {
         Profile profile = made_up_profile(small_trace(), 3);
         profile.card = "NVIDIA H100 80GB HBM3";
         profile.attention_backend = "cudnn";
         profile.repeatable_bits = false;
         return profile_to_json(profile, small_trace());
       },
       [](const Json& json) { return profile_to_json(profile_from_json(json), small_trace()); }},
      {"links",
       {"1.0"},
       [] { return links_to_json(made_up_links()); },
       [](const Json& json) { return links_to_json(links_from_json(json)); }},
      {"ceilings",
       {"1.0"},
       [] { return ceilings_to_json(made_up_ceilings()); },
       [](const Json& json) { return ceilings_to_json(ceilings_from_json(json)); }},
      {"plan",
       {"1.0"},
       [] { return plan_to_json(std::get<Plan>(resolve(save_mm(), toy_llama({.layers = 2})))); },
       [](const Json& json) { return plan_to_json(plan_from_json(json)); }},
      {"policy",
       {"1.0"},
       [] { return policy_to_json(save_mm()); },
       [](const Json& json) { return policy_to_json(policy_from_json(json)); }},
      {"point",
       {"1.0"},
       [] {
         return point_file_to_json({sample_provenance(), sample_point(), {}});
       },
       [](const Json& json) { return point_file_to_json(point_file_from_json(json)); }},
      {"report",
       {"1.0"},
       [] { return report_to_json(sample_report()); },
       [](const Json& json) { return report_to_json(report_from_json(json)); }},
      {"compare",
       {"1.0"},
       [] {
         return compare_to_json(
             compare_reports(sample_report(), "base.json", slower_report(), "candidate.json", {}));
       },
       [](const Json& json) { return compare_to_json(compare_from_json(json)); }},
      {"gate",
       {"1.0", "1.1"},
       [] {
         const Report reference = sample_report();
         GateRecord record = gate_report(slower_report(), "report.json", &reference,
                                         "reference.json", every_limit());
         record.curves = gated_curves();
         return gate_to_json(record);
       },
       [](const Json& json) { return gate_to_json(gate_from_json(json)); }},
      {"front",
       {"1.0"},
       [] { return front_to_json(sample_front()); },
       [](const Json& json) { return front_to_json(front_from_json(json)); }},
      {"loads",
       {"1.0"},
       [] { return loads_to_json(sample_loads()); },
       [](const Json& json) { return loads_to_json(loads_from_json(json)); }},
      // Only people write sweep files, so there is no writer.
      {"sweep",
       {"1.0"},
       sample_sweep,
       [](const Json& json) {
         sweep_from_json(json);
         return json;
       }},
      {"sweep_plan",
       {"1.0", "1.1"},
       [] { return plan_to_json(sample_sweep_plan()); },
       [](const Json& json) { return plan_to_json(comparison_plan_from_json(json)); }},
      {"prediction", {"1.0"}, sample_prediction, unchanged},
      {"list", {"1.0"}, sample_list, unchanged},
      {"systems", {"1.0"}, sample_systems, unchanged},
      {"description", {"1.0"}, sample_description, unchanged},
      {"doctor", {"1.0"}, sample_doctor, unchanged},
      {"sweep_status", {"1.0"}, sample_sweep_status, unchanged},
  };
  return all;
}

// The reader computes this value for older files without the key.
constexpr std::string_view kDerivedKey = "predicted_step_time_gap_ns";

bool is_in_milliseconds(const std::string& key) { return key.ends_with("_ms"); }

// Returns the current name of a key. In version 1.0, "spans" of traces and profiles was "segments",
// and times in the plans of sweeps were in milliseconds.
std::string name_now(const std::string& key) {
  if (is_in_milliseconds(key)) return key.substr(0, key.size() - 2) + "ns";
  return key == "segments" ? "spans" : key;
}

// Returns the value of a key in the unit of its current name.
Json value_now(const std::string& key, const Json& value) {
  if (!is_in_milliseconds(key) || value.is_null()) return value;
  return value.get<std::int64_t>() * 1'000'000;
}

// Returns whether `object` has a key whose current name is `name`.
bool has_renamed(const Json& object, const std::string& name) {
  const auto items = object.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const auto& item) { return name_now(item.key()) == name; });
}

// The id of a sweep's plan is the hash of all other keys, so it changes with their names.
bool is_hash_of_keys(const std::string& kind, const std::string& key) {
  return kind == "sweep_plan" && key == "id";
}

// Returns the path of the first value of `before` that is missing or different in `again`, or "".
// Keys that are only in `again` must be null or empty lists, because a later build may have added
// them.
std::string first_loss(const Json& before, const Json& again, const std::string& path) {
  if (before.is_object() && again.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const std::string now = name_now(key);
      if (!again.contains(now)) return path + "." + key;
      const std::string loss = first_loss(value_now(key, value), again.at(now), path + "." + key);
      if (!loss.empty()) return loss;
    }
    for (const auto& [key, value] : again.items()) {
      const bool nothing =
          value.is_null() || (value.is_array() && value.empty()) || key == kDerivedKey;
      if (!nothing && !has_renamed(before, key)) return path + "." + key + " (made up)";
    }
    return "";
  }
  if (before.is_array() && again.is_array() && before.size() == again.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::string loss =
          first_loss(before.at(i), again.at(i), path + "[" + std::to_string(i) + "]");
      if (!loss.empty()) return loss;
    }
    return "";
  }
  return before == again ? "" : path;
}

}  // namespace

TEST_CASE("every kind of file has a list of released versions") {
  std::vector<std::string> listed;
  for (const Format& format : formats()) listed.push_back(format.kind);
  for (const std::string_view kind : schema_kinds()) {
    CAPTURE(kind);
    CHECK(std::find(listed.begin(), listed.end(), kind) != listed.end());
  }
}

TEST_CASE("this build writes a released version of every format") {
  for (const Format& format : formats()) {
    CHECK(format.sample().at("schema") == "rematch." + format.kind + "/" + format.versions.back());
  }
}

TEST_CASE("files of every released version are valid, and reading loses nothing") {
  for (const Format& format : formats()) {
    for (const std::string& version : format.versions) {
      CAPTURE(format.kind, version);
      const Json json = read_json_file(fixture(format.kind, version));
      CHECK(json.at("schema") == "rematch." + format.kind + "/" + version);
      CHECK(validate(json).value_or("valid") == "valid");
      const Json again = format.read_and_write(json);
      for (const auto& [key, value] : json.items()) {
        CAPTURE(key);
        if (key == "schema" || is_hash_of_keys(format.kind, key)) continue;
        const std::string now = name_now(key);
        REQUIRE(again.contains(now));
        CHECK(first_loss(value_now(key, value), again.at(now), key) == "");
      }
    }
  }
}

TEST_CASE("the error for a released file with a bad or missing key gives the path of the key") {
  for (const Format& format : formats()) {
    const Json good = read_json_file(fixture(format.kind, format.versions.back()));
    for (const auto& [key, value] : good.items()) {
      if (key == "schema") continue;
      CAPTURE(format.kind, key);
      Json bad = good;
      bad[key] = value.is_string() ? Json(Json::array({1})) : Json("nonsense");
      const auto problem = validate(bad);
      if (problem) CHECK_THAT(*problem, Catch::StartsWith(key));
      CHECK_THROWS_AS(problem ? throw FormatError(*problem) : format.read_and_write(bad),
                      FormatError);
    }
  }
}

TEST_CASE("missing files of released versions are written", "[.write]") {
  for (const Format& format : formats()) {
    const std::string file = fixture(format.kind, format.versions.back());
    if (!std::filesystem::exists(file)) write_json_file(file, format.sample());
  }
}

}  // namespace rematch::testing
