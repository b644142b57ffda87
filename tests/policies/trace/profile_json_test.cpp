#include "policies/trace/profile_json.h"

#include <algorithm>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/measured_profile.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/random_trace.h"
#include "tests/support/schema_check.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Catch::Contains;
using testing::made_up_profile;
using testing::toy_llama;

Profile through_text(const Profile& profile, const Trace& trace) {
  return profile_from_json(parse_json(profile_to_json(profile, trace).dump(), "profile"));
}

TEST_CASE("a profile reads back unchanged and fits the schema", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(60); ++seed) {
    CAPTURE(seed);
    const Trace trace = testing::random_trace(seed);
    Profile profile = made_up_profile(trace, seed);
    if (seed % 2 == 1) profile.measured_layers = static_cast<int>(seed);
    if (seed % 4 == 1) profile.gradient_sums = profile.optimizer / 2;
    if (seed % 4 == 3) profile.links = "cpu.links.json: tp=2, measured on cpu over gloo";
    if (seed % 5 == 2) {
      profile.card = "NVIDIA H100 80GB HBM3";
      profile.attention_backend = "cudnn";
      profile.repeatable_bits = seed % 2 == 0;
    }
    if (seed % 3 == 1) {
      profile.forward_kernels.emplace(trace.ops.size(), 1);
      profile.forward_kernels->back() = static_cast<std::int32_t>(seed);
    }
    REQUIRE(through_text(profile, trace) == profile);
    REQUIRE(testing::schema_error(profile_to_json(profile, trace), "profile") == std::nullopt);
  }
}

TEST_CASE("times that are equal in all layers are stored only once in a profile") {
  const auto size = [](int layers) {
    const Trace trace = toy_llama({.layers = layers});
    Profile profile = made_up_profile(trace, 1);
    std::fill(profile.forward.begin(), profile.forward.end(), Profile::Duration(100));
    std::fill(profile.backward.begin(), profile.backward.end(), Profile::Duration(200));
    std::fill(profile.forward_temporary->begin(), profile.forward_temporary->end(), Bytes{64});
    std::fill(profile.backward_temporary->begin(), profile.backward_temporary->end(), Bytes{64});
    return profile_to_json(profile, trace).dump().size();
  };
  CHECK(size(80) < size(8) + 72 * 10);
}

// Python scripts write compact profiles, because they cannot compute the trace's canonical hash.
TEST_CASE("a compact profile is expanded for a trace with the same ops") {
  const Trace trace = toy_llama({.layers = 3});
  const Profile measured = made_up_profile(trace, 1);
  Json json = profile_to_json(measured, trace);
  json.erase("trace_sha256");
  json["ops_sha256"] = ops_sha256(trace);
  REQUIRE(testing::schema_error(json, "profile") == std::nullopt);
  const Profile whole = profile_for_trace(profile_from_json(json), trace);
  CHECK(profile_problem(whole, trace) == std::nullopt);
  CHECK(whole.num_steps == measured.num_steps);
  CHECK(whole.device == measured.device);
  // Equal layers get the median of their times.
  const auto first_of = [&](std::size_t layer) {
    return trace.scopes[trace.blocks[layer].scope].first_op;
  };
  CHECK(whole.forward[first_of(0)] == whole.forward[first_of(1)]);

  Trace other = trace;
  other.ops.front().name = "aten::other";
  CHECK_THAT(*profile_problem(profile_for_trace(profile_from_json(json), other), other),
             Contains("differ from the trace's ops"));
  json.erase("ops_sha256");
  CHECK(testing::schema_error(json, "profile") != std::nullopt);
  CHECK_THROWS_WITH(profile_from_json(json), Contains("trace_sha256"));
}

TEST_CASE("a step's time includes its ops and the time between them") {
  Profile profile;
  profile.forward = {Profile::Duration(1), Profile::Duration(2)};
  profile.backward = {Profile::Duration(10)};
  profile.forward_between_ops = Profile::Duration(100);
  profile.backward_between_ops = Profile::Duration(1000);
  profile.optimizer = Profile::Duration(10000);
  CHECK(profile.forward_time().count() == 103);
  CHECK(profile.backward_time().count() == 1010);
  CHECK(profile.step_time().count() == 11113);
}

TEST_CASE("the error for a profile of another trace is one line with the difference") {
  const Trace trace = toy_llama({.layers = 3});
  const Profile profile = made_up_profile(trace, 1);
  CHECK(profile_problem(profile, trace) == std::nullopt);
  Trace other = trace;
  other.model = "wan_small";
  CHECK_THAT(profile_problem(profile, other).value(), Contains("model " + trace.model) &&
                                                          Contains("wan_small") &&
                                                          Contains("rematch profile"));
  other = trace;
  other.dtype = "bfloat16";
  CHECK_THAT(profile_problem(profile, other).value(),
             Contains("dtype float32") && Contains("bfloat16"));
  other = trace;
  other.dimensions["tokens"] = 4096;
  CHECK_THAT(profile_problem(profile, other).value(), Contains("4096"));
  other = trace;
  other.storages.back().bytes += Bytes{4};
  CHECK_THAT(profile_problem(profile, other).value(), Contains("another trace"));
  CHECK_THROWS_AS(profile_to_json(profile, other), std::invalid_argument);
  Profile shorter = profile;
  shorter.forward.pop_back();
  CHECK_THAT(profile_problem(shorter, trace).value(), Contains("forward"));
}

TEST_CASE("the error for a profile with impossible values gives the path of the mistake") {
  const Trace trace = toy_llama({.layers = 2});
  const Json good = profile_to_json(made_up_profile(trace, 1), trace);
  const auto error = [&](const auto& damage) {
    Json json = good;
    damage(json);
    try {
      profile_from_json(json);
    } catch (const FormatError& refused) {
      return std::string(refused.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(error([](Json& json) { json["source"] = "guessed"; }),
             Contains("guessed") && Contains("measured, roofline"));
  CHECK_THAT(error([](Json& json) { json["forward"]["spans"][0] = 99; }),
             Contains("forward.spans[0]") && Contains("99"));
  CHECK_THAT(error([](Json& json) { json["forward"]["types"][0]["times_ns"][0] = -1; }),
             Contains("forward.types[0].times_ns[0]") && Contains("-1"));
  CHECK_THAT(error([](Json& json) { json["forward"]["types"][0]["temporary_bytes"].push_back(1); }),
             Contains("forward.types[0].temporary_bytes"));
  CHECK_THAT(error([](Json& json) {
               json["forward"]["types"][0]["kernels"] = {1, 1};
             }),
             Contains("forward.types[0].kernels") && Contains("has 2 entries"));
  const auto counted = [](const Json& type) { return Json(type["times_ns"].size(), 1); };
  CHECK_THAT(error([&](Json& json) {
               Json& type = json["forward"]["types"][0];
               type["kernels"] = counted(type);
             }),
             Contains("has kernels in only some of its types"));
  CHECK_THAT(error([](Json& json) { json["schema"] = "rematch.profile/2.0"; }),
             Contains("rematch.profile/2.0"));
  CHECK_THAT(error([](Json& json) { json.erase("optimizer_ns"); }), Contains("optimizer_ns"));
}

}  // namespace
}  // namespace rematch
