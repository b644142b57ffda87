#include "policies/predict/device/links.h"

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/predict/device/roofline.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_links.h"
#include "tests/support/schema_check.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using Catch::Contains;
using std::chrono::nanoseconds;
using testing::made_up_links;

TEST_CASE(
    "times are interpolated between measured sizes, and extrapolated beyond the largest size") {
  const LinkCurve curve = {{Bytes{100}, nanoseconds(50)}, {Bytes{300}, nanoseconds(90)}};
  CHECK(time_at(curve, Bytes{0}) == nanoseconds(50));
  CHECK(time_at(curve, Bytes{100}) == nanoseconds(50));
  CHECK(time_at(curve, Bytes{150}) == nanoseconds(60));
  CHECK(time_at(curve, Bytes{300}) == nanoseconds(90));
  CHECK(time_at(curve, Bytes{3000}) == nanoseconds(900));
  CHECK(time_at({{Bytes{10}, nanoseconds(7)}}, Bytes{20}) == nanoseconds(14));
}

TEST_CASE("a measured collective takes the time of its slowest rank") {
  const LinkProfile one = made_up_links();
  LinkProfile two = one;
  two.groups[0].collectives[CollectiveKind::kAllGather][1].median = nanoseconds(20'000);
  two.to_host[0].median = nanoseconds(1);
  const LinkProfile slowest = slowest_of({one, two});
  const auto& gather = slowest.groups[0].collectives.at(CollectiveKind::kAllGather);
  CHECK(gather[0].median == nanoseconds(10'000));
  CHECK(gather[1].median == nanoseconds(20'000));
  CHECK(slowest.to_host == one.to_host);
  two.to_device.pop_back();
  CHECK_THROWS_WITH(slowest_of({one, two}), "the ranks measured links at different sizes");
  two.groups.clear();
  CHECK_THROWS_WITH(slowest_of({one, two}), "the ranks measured links of different groups");
}

// Builds two ranks that gather [256] floats to [512], 2 KiB. Backward runs a reduce-scatter of 2
// KiB, and then an all-reduce of 4 KiB of gradients.
Trace gathering() {
  testing::TraceBuilder build("gathering");
  const ValueId x = build.outside({256}, "float32", true);
  const ValueId part = build.call("aten::silu", {x}, {256}, {{0}, {}});
  const ValueId whole = build.call("_c10d_functional::all_gather_into_tensor", {part}, {512});
  build.trace().ops.back().group = "tp";
  build.wait(whole);
  build.call("aten::mul", {whole}, {512}, {{0}, {}});
  Trace trace = build.finish();
  trace.dimensions["tp"] = 2;
  for (BackwardEvent& event : trace.backward) {
    if (!collective_kind(event.op)) continue;
    event.op = "_c10d_functional::reduce_scatter_tensor";
    event.group = "tp";
    event.collective_bytes = Bytes{2048};
  }
  trace.gradient_sums = {{"_c10d_functional::all_reduce_", "tp", Bytes{4096}}};
  return trace;
}

TEST_CASE(
    "a roofline takes the times of collectives from measured links, and states the source of the "
    "links") {
  const Trace trace = gathering();
  const DeviceSheet& sheet = device_sheets().front();
  const Profile by_sheet = roofline_profile(trace, sheet);
  const Profile by_links =
      roofline_profile(trace, sheet, {.links = {{made_up_links(), "made up: tp=2"}}});
  CHECK(by_sheet.links.empty());
  CHECK(by_links.links == "made up: tp=2");
  for (const OpId op : trace.ops.ids()) {
    CAPTURE(trace.ops[op].name);
    const bool is_collective = collective_kind(trace.ops[op].name).has_value();
    CHECK(by_links.forward[op] == (is_collective ? nanoseconds(11'024) : by_sheet.forward[op]));
  }
  std::size_t num_scatters = 0;
  for (const nanoseconds time : by_links.backward) num_scatters += time == nanoseconds(11'024);
  CHECK(num_scatters == 1);
  CHECK(by_links.gradient_sums == nanoseconds(13'072));
  CHECK(by_links.optimizer - by_links.gradient_sums == by_sheet.optimizer - by_sheet.gradient_sums);
}

TEST_CASE(
    "the error for links measured in another layout names both layouts and the command to run") {
  const Trace trace = gathering();
  LinkProfile links = made_up_links();
  CHECK(links_problem(links, trace) == std::nullopt);
  Trace wider = trace;
  wider.dimensions["tp"] = 4;
  CHECK(
      links_problem(links, wider) ==
      "the step has collectives over tp=4, but the links were measured for tp=2; measure them with "
      "rematch profile --links --parallel tp=4");
  Trace with_experts = trace;
  with_experts.dimensions = {{"fsdp", 8}, {"ep", 4}, {"expert_fsdp", 2}};
  for (TracedOp& op : with_experts.ops) {
    if (!op.group.empty()) op.group = "expert_fsdp";
  }
  CHECK_THAT(*links_problem(links, with_experts),
             Contains("collectives over expert_fsdp=2") && Contains("--parallel fsdp=8,ep=4"));
  links.groups[0].collectives.erase(CollectiveKind::kReduceScatter);
  CHECK_THAT(*links_problem(links, trace), Contains("reduce_scatter over tp=2, which was not"));
  CHECK_THROWS_WITH(roofline_profile(trace, device_sheets().front(), {.links = {{links, "links"}}}),
                    Contains("reduce_scatter"));
  testing::TraceBuilder build("alone");
  build.call("aten::silu", {build.outside({4}, "float32", true)}, {4}, {{0}, {}});
  const Trace alone = build.finish();
  CHECK_FALSE(has_collectives(alone));
  CHECK_THAT(*links_problem(links, alone), Contains("no collectives"));
}

TEST_CASE("the rate of the host link is the rate of the largest copies") {
  const HostLink link = host_link_of(made_up_links(), "made up");
  CHECK(link.to_host_bytes_per_second == 2e9);
  CHECK(link.to_device_bytes_per_second == 4e9);
  CHECK(link.source == "made up");
}

// At 1 byte a nanosecond, 900 bytes take 900 ns. Compute hides 400 ns of a copy to the host.
TEST_CASE("a step waits for the part of a copy that compute does not hide") {
  HostLink link{1e9, 5e8, "made up"};
  CHECK(link.wait_out(Bytes{900}) == nanoseconds(900));
  CHECK(link.wait_back(Bytes{900}) == nanoseconds(1800));
  link.hidden_out = nanoseconds(400);
  link.hidden_back = nanoseconds(2000);
  CHECK(link.wait_out(Bytes{900}) == nanoseconds(500));
  CHECK(link.wait_out(Bytes{300}) == nanoseconds(0));
  CHECK(link.wait_back(Bytes{900}) == nanoseconds(0));
}

// The toy model's blocks differ only in the times that this test sets.
TEST_CASE("compute hides a copy for as long as the fastest block takes") {
  const Trace trace = testing::toy_llama({.layers = 2});
  Profile profile = roofline_profile(trace, *find_device_sheet("h100"));
  std::fill(profile.forward.begin(), profile.forward.end(), nanoseconds(1));
  std::fill(profile.backward.begin(), profile.backward.end(), nanoseconds(3));
  const auto num_ops = [&](std::size_t block) {
    const TracedScope& scope = trace.scopes[trace.blocks[block].scope];
    return scope.end_op - scope.first_op;
  };
  HostLink link{1e9, 1e9, "made up"};
  hide_behind_blocks(trace, profile, link);
  CHECK(link.hidden_out == nanoseconds(num_ops(0)));
  CHECK(link.hidden_back.count() % 3 == 0);
  CHECK(link.hidden_back > nanoseconds(0));
  // An op of the second block takes longer, so the first block is the fastest.
  profile.forward[trace.scopes[trace.blocks[1].scope].first_op] = nanoseconds(1000);
  hide_behind_blocks(trace, profile, link);
  CHECK(link.hidden_out == nanoseconds(num_ops(0)));
  profile.forward[trace.scopes[trace.blocks[0].scope].first_op] = nanoseconds(50);
  hide_behind_blocks(trace, profile, link);
  CHECK(link.hidden_out == nanoseconds(num_ops(0) + 49));
}

TEST_CASE("a link profile reads back unchanged and fits its schema") {
  LinkProfile links = made_up_links();
  for (const bool is_known : {true, false}) {
    if (!is_known) {
      links.git_commit.reset();
      links.git_dirty.reset();
    }
    const Json json = links_to_json(links);
    CHECK(testing::schema_error(json, "links") == std::nullopt);
    CHECK(links_from_json(parse_json(json.dump(), "links")) == links);
  }
}

TEST_CASE("the error for a link profile with impossible values contains the JSON path") {
  const Json good = links_to_json(made_up_links());
  const auto refusal = [&](const char* path, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(path)] = value;
    try {
      links_from_json(bad);
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(refusal("/host/to_host/1/bytes", 1024),
             Contains("host.to_host[1].bytes") && Contains("not larger than the previous point"));
  CHECK_THAT(refusal("/host/to_device/0/median_ns", 0), Contains("a time must be above 0"));
  CHECK_THAT(refusal("/host/to_device", Json::array()), Contains("at least one point"));
  CHECK_THAT(refusal("/groups/0/collectives/all_sums", Json::array()),
             Contains("groups[0].collectives.all_sums: names an unknown collective"));
  CHECK_THAT(refusal("/groups/0/num_ranks", 1), Contains("groups[0].num_ranks"));
}

}  // namespace
}  // namespace rematch
