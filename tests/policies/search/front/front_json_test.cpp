#include "policies/search/front/front_json.h"

#include <algorithm>
#include <array>
#include <variant>

#include "policies/base/json.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/search/front/front_search.h"
#include "policies/search/front/measured_front.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

FrontRecord sample_record() {
  const Trace trace = testing::toy_llama({.layers = 3, .tokens = 64});
  const Profile profile = testing::made_up_profile(trace, 1);
  const auto full = resolve(std::get<Policy>(parse_policy("full")), trace);
  FrontSearch search(trace, profile, {});
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.front = search.front(6, {std::get<Plan>(full)});
  record.budget = search.lowest().figures.peak;
  record.answer = search.fastest_within(*record.budget);
  record.simple = SimplePoint{*record.answer, Bytes{5}, std::chrono::nanoseconds(7)};
  return record;
}

TEST_CASE("a front reads back unchanged") {
  const Json json = front_to_json(sample_record());
  CHECK(front_to_json(front_from_json(json)) == json);
  FrontRecord unanswered = sample_record();
  unanswered.answer.reset();
  unanswered.simple.reset();
  unanswered.budget.reset();
  unanswered.max_slowdown_ratio = 0.05;
  unanswered.optimizer = OptimizerKind::kNothing;
  unanswered.time_source = ProfileSource::kRoofline;
  unanswered.world = 8;
  CHECK(front_from_json(front_to_json(unanswered)).is_estimate_of_ranks());
  unanswered.front.points[0].figures.communication = unanswered.front.points[0].step_time * 2 / 3;
  unanswered.front.points[1].figures.communication.reset();
  const Front ranged = front_from_json(front_to_json(unanswered)).front;
  CHECK(ranged.points[0].range() == unanswered.front.points[0].range());
  CHECK(ranged.points[0].range()->all_overlaps() == *ranged.points[0].figures.communication);
  CHECK_FALSE(ranged.points[1].range().has_value());
  unanswered.layout = "tp=2,fsdp=4";
  CHECK(front_from_json(front_to_json(unanswered)).layout == "tp=2,fsdp=4");
  CHECK_FALSE(front_to_json(unanswered).contains("links"));
  unanswered.links = "node.links.json: fsdp=8, measured on cpu over gloo";
  CHECK(front_from_json(front_to_json(unanswered)).links == unanswered.links);
  const Json again = front_to_json(front_from_json(front_to_json(unanswered)));
  CHECK(again == front_to_json(unanswered));
  for (const Json& point : again.at("points")) {
    CHECK(point.at("time_source") == "roofline");
    CHECK(point.at("predicted_step_time_bound_ns").get<std::int64_t>() +
              point.at("predicted_step_time_gap_ns").get<std::int64_t>() ==
          point.at("predicted_step_time_ns"));
  }
}

TEST_CASE("offloading points give their host bytes and copy times") {
  const Trace trace = testing::toy_llama({.layers = 6, .tokens = 64});
  SearchSpace space;
  space.optimizer = OptimizerKind::kNothing;
  space.offload = HostLink{1e15, 5e14, "made up"};
  const Profile profile = testing::made_up_profile(trace, 1);
  FrontSearch search(trace, profile, space);
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.front = search.front(6, {});
  record.host_link = space.offload;
  const Json json = front_to_json(record);
  CHECK(front_to_json(front_from_json(json)) == json);
  const Json& points = json.at("points");
  const auto found = std::find_if(points.begin(), points.end(), [](const Json& point) {
    return point.contains("predicted_host");
  });
  REQUIRE(found != points.end());
  CHECK(found->at("predicted_host").at("copied_out_bytes").get<std::int64_t>() > 0);
  CHECK_THAT(found->at("saves").get<std::string>(), Catch::Contains(" offload "));
  CHECK(found->dump().find("\"offloads\":[") != std::string::npos);
  CHECK_FALSE(json.at("points").back().contains("predicted_host"));
  Json broken = json;
  broken["host_link"]["to_host_bytes_per_second"] = 0;
  CHECK_THROWS_WITH(front_from_json(broken), Catch::Contains("must be above 0 bytes"));
}

TEST_CASE(
    "a front stores policy none separately only if it differs from the plan without regions") {
  CHECK_FALSE(front_to_json(sample_record()).contains("none"));
  const Trace trace = testing::toy_sharded();
  const Profile profile = testing::made_up_profile(trace, 1);
  FrontSearch search(trace, profile, {}, resolve_none(trace));
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.front = search.front(6, {});
  const Json json = front_to_json(record);
  CHECK(json.at("none").at("policy") == "none");
  CHECK(json.at("none").at("time_source") == "measured");
  CHECK(json.at("nothing_recomputed").at("policy") == "no_reshard(none)");
  const FrontRecord read = front_from_json(json);
  CHECK(front_to_json(read) == json);
  CHECK(read.front.reference().plan == record.front.none->plan);
  Json broken = json;
  broken["none"]["plan_sha256"] = json.at("nothing_recomputed").at("plan_sha256");
  CHECK_THROWS_WITH(front_from_json(broken),
                    Catch::Contains("does not match the hash of its plan"));
}

TEST_CASE(
    "points of a front give the number of kernels launched again, if the profile has kernel "
    "counts") {
  const Json unknown = front_to_json(sample_record());
  for (const Json& point : unknown.at("points")) {
    CHECK(point.at("predicted_recomputed_kernels").is_null());
  }
  const Trace trace = testing::toy_llama({.layers = 3, .tokens = 64});
  Profile profile = testing::made_up_profile(trace, 1);
  profile.forward_kernels.emplace(trace.ops.size(), 2);
  FrontSearch search(trace, profile, {});
  FrontRecord record = make_front_record(trace, profile, OptimizerKind::kAdamW);
  record.front = search.front(6, {});
  const Json json = front_to_json(record);
  CHECK(front_to_json(front_from_json(json)) == json);
  for (const Json& point : json.at("points")) {
    CHECK(point.at("predicted_recomputed_kernels") ==
          2 * point.at("predicted_recomputed_ops").get<std::int64_t>());
  }
}

FrontRecord measured_sample() {
  FrontRecord record = sample_record();
  Front& front = record.front;
  for (FrontPoint& point : front.points) {
    point.measured.emplace();
    point.measured->peak = point.figures.peak;
    point.measured->step_time = point.step_time * 3;
    point.measured->step_interval = {point.step_time * 2, point.step_time * 4};
  }
  front.points[1].measured = MeasuredFigures{};
  front.points[1].measured->status = "timeout";
  front.points[1].measured->reason = "no result after 1 ms";
  front.points.back().measured->step_time = front.points.back().step_time * 30;
  weigh_measurement(front, {0}, std::array<double, 2>{0.99, 1.02});
  front.is_complete = false;
  return record;
}

TEST_CASE("a measured front reads back unchanged") {
  const Json json = front_to_json(measured_sample());
  CHECK(front_to_json(front_from_json(json)) == json);
  CHECK(json.at("complete") == false);
  CHECK(json.at("points").at(0).at("measured").at("peak_equals_prediction") == true);
  CHECK(json.at("points").at(0).at("measured").at("is_anchor") == true);
  CHECK(json.at("points").at(1).at("measured").at("step_time_ns").is_null());
  CHECK(json.at("points").back().at("measured").at("lost_to") ==
        json.at("points").at(json.at("points").size() - 2).at("policy"));
  CHECK(json.at("measurement").at("control_interval") == Json{0.99, 1.02});
}

TEST_CASE("a front that was never measured needs no measured figures to be complete") {
  Json json = front_to_json(sample_record());
  json.erase("complete");
  json.erase("measurement");
  for (Json& point : json.at("points")) point.erase("measured");
  const FrontRecord record = front_from_json(json);
  CHECK(record.front.is_complete);
  CHECK_FALSE(record.front.measurement);
  CHECK_FALSE(record.front.points[0].measured);
}

TEST_CASE("at each peak of a front, the bytes of all holders sum to the peak") {
  for (const FrontPoint& point : sample_record().front.points) {
    CHECK(point.figures.holders.total() == point.figures.peak);
  }
}

TEST_CASE("the error for a malformed front gives the path of the mistake") {
  struct Damage {
    const char* pointer;
    Json value;
    const char* message;
  };
  const std::vector<Damage> damages = {
      {"/schema", "rematch.front/2.0", "rematch.front/2.0"},
      {"/knee", 99, "knee"},
      {"/schedule", "later", "'later' is not one of whole_region, on_demand"},
      {"/optimizer", "adamax", "found 'adamax'; known are none, adamw, adamw(state=bfloat16)"},
      {"/points", Json::array(), "points"},
      {"/points/0/plan_sha256", "00", "does not match the hash of its plan"},
      {"/points/1/predicted_peak_phase", "lunch", "'lunch' is not one of forward"},
      {"/complete", "yes", "complete"},
      {"/measurement/anchors/0", 99, "measurement.anchors[0]"},
      {"/measurement/control_interval", Json{1}, "has 1 entries; it must have 2"},
      {"/points/0/measured/step_time_interval_ns", Json{1, 2, 3}, "has 3 entries; it must have 2"},
      {"/points/0/measured/peak_allocated_bytes", -5, "points[0].measured.peak_allocated_bytes"},
      {"/points/1/predicted_step_time_ns", -1, "points[1].predicted_step_time_ns"}};
  const Json good = front_to_json(measured_sample());
  REQUIRE(good.at("points").size() > 1);
  for (const Damage& damage : damages) {
    CAPTURE(damage.pointer);
    Json bad = good;
    bad[Json::json_pointer(damage.pointer)] = damage.value;
    CHECK_THROWS_WITH(front_from_json(bad), Catch::Contains(damage.message));
  }
}

}  // namespace
}  // namespace rematch
