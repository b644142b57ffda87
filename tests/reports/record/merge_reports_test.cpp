#include "reports/record/merge_reports.h"
#include "policies/base/rejected.h"

#include <algorithm>
#include <random>
#include <set>

#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::sample_oom;
using testing::sample_point;
using testing::sample_provenance;
using testing::sample_recomputing;

using Result = std::variant<MergedReport, Rejected, FingerprintsDiffer>;

PlannedPoint planned(const PointRecord& point) {
  return {point.policy, point.identity.schedule, point_key(point.identity)};
}

const std::vector<std::string> kPolicies = {"none", "full", "attn_only", "save_mm", "nth_last(2)"};

std::vector<PlannedPoint> whole_plan() {
  std::vector<PlannedPoint> points;
  for (const std::string& policy : kPolicies) points.push_back(planned(sample_point(policy)));
  return points;
}

// A repeat of the reference in another process, with this loss.
RepeatRecord repeat_with(float loss) {
  const PointRecord none = sample_point("none");
  StepRecord step = none.steps.front();
  testing::set_loss(step, loss);
  return {point_key(none.identity), "none", PointStatus::kOk, "", {step}};
}

// Shard `index` of two. It has every second policy, and policy `none`, which every shard measures.
Report shard(int index) {
  Report report;
  report.provenance = sample_provenance();
  report.provenance.reproduce += " --shard " + std::to_string(index) + "/2";
  report.provenance.command.push_back(std::to_string(index));
  report.provenance.environment.hostname = "host" + std::to_string(index);
  report.planned = whole_plan();
  report.points.push_back(sample_point("none"));
  report.points.back().time->samples.front().front() += std::chrono::nanoseconds(index);
  report.repeats = {repeat_with(1.5), repeat_with(1.5), repeat_with(static_cast<float>(index))};
  for (std::size_t place = 1; place < kPolicies.size(); ++place) {
    if (place % 2 == static_cast<std::size_t>(index)) {
      report.points.push_back(sample_recomputing(kPolicies[place], 8, Bytes{1 << 20}, 1.2));
    }
  }
  return report;
}

Report single(const PointRecord& point, const Provenance& provenance = sample_provenance()) {
  Report report;
  report.provenance = provenance;
  report.points.push_back(point);
  return report;
}

Provenance other_machine() {
  Provenance provenance = sample_provenance();
  provenance.environment.cpu_model = "Another CPU";
  provenance.environment.driver = "580.65.06";
  return provenance;
}

MergedReport merged(std::vector<Report> reports,
                    MixedEnvironments mixed = MixedEnvironments::kRefuse) {
  Result result = merge_reports(std::move(reports), mixed);
  if (const auto* rejected = std::get_if<Rejected>(&result)) FAIL(rejected->message);
  if (const auto* differ = std::get_if<FingerprintsDiffer>(&result)) FAIL(differ->message);
  return std::get<MergedReport>(std::move(result));
}

std::string bytes_of(const Report& report) { return report_to_json(report).dump(2); }

std::string rejection(std::vector<Report> reports) {
  const Result result = merge_reports(std::move(reports), MixedEnvironments::kRefuse);
  const auto* rejected = std::get_if<Rejected>(&result);
  return rejected == nullptr ? "merged" : rejected->message;
}

}  // namespace

TEST_CASE("two shards merge into the whole run in the requested order") {
  const MergedReport both = merged({shard(1), shard(0)});
  CHECK(both.missing.empty());
  REQUIRE(both.report.points.size() == kPolicies.size());
  for (std::size_t place = 0; place < kPolicies.size(); ++place) {
    CHECK(both.report.points[place].policy == kPolicies[place]);
  }
  CHECK(both.report.provenance.environment.hostname == std::nullopt);
  CHECK(both.report.provenance.environment.cpu_model == "Made-up CPU");
  CHECK_THAT(both.report.provenance.reproduce,
             Catch::Contains("--shard 0/2 && ") && Catch::EndsWith("--shard 1/2"));
  REQUIRE(both.report.sources.size() == 2);
  CHECK(both.notes == std::vector<std::string>{
                          "point none was measured 2 times with equal ops, bytes and bits; one "
                          "measurement is kept"});
  CHECK(validate(report_to_json(both.report)) == std::nullopt);
}

TEST_CASE("a merged report reads back unchanged") {
  const Report both = merged({shard(0), shard(1)}).report;
  CHECK(bytes_of(report_from_json(report_to_json(both))) == bytes_of(both));
  Json json = report_to_json(both);
  json["sources"][0]["points"].push_back(99);
  CHECK_THROWS_AS(report_from_json(json), FormatError);
  json["sources"] = Json::array();
  CHECK_THROWS_AS(report_from_json(json), FormatError);
}

TEST_CASE("the text of a merged report does not depend on the order and grouping of its sources",
          "[property]") {
  std::vector<Report> reports = {shard(0), shard(1), single(sample_oom("save_linears")),
                                 single(sample_point("all"), other_machine()),
                                 single(sample_point("none"), other_machine())};
  const auto mixed = MixedEnvironments::kKeepApart;
  const std::string expected = bytes_of(merged(reports, mixed).report);
  std::mt19937 generator(7);
  for (int round = 0; round < 40; ++round) {
    std::shuffle(reports.begin(), reports.end(), generator);
    CHECK(bytes_of(merged(reports, mixed).report) == expected);
    const auto middle = reports.begin() + 1 + round % 4;
    const Report front = merged({reports.begin(), middle}, mixed).report;
    const Report back = merged({middle, reports.end()}, mixed).report;
    CHECK(bytes_of(merged({back, front}, mixed).report) == expected);
  }
}

TEST_CASE("merging one report changes nothing") {
  const Report report = shard(0);
  CHECK(bytes_of(merged({report}).report) == bytes_of(report));
  CHECK(bytes_of(merged({report, report}).report) == bytes_of(report));
}

TEST_CASE("points that no shard measured are listed as missing") {
  const MergedReport half = merged({shard(0)});
  REQUIRE(half.missing.size() == 2);
  CHECK(half.missing[0].policy == "full");
  CHECK(half.missing[1].policy == "save_mm");
  // The merged report still lists its missing points, so that a late shard can be merged.
  CHECK(merged({half.report, shard(1)}).missing.empty());
}

TEST_CASE(
    "the error for different environments names the difference, unless the reports are kept "
    "apart") {
  const std::vector<Report> reports = {single(sample_point("none")),
                                       single(sample_point("none"), other_machine())};
  const Result refused = merge_reports(reports, MixedEnvironments::kRefuse);
  REQUIRE(std::holds_alternative<FingerprintsDiffer>(refused));
  CHECK_THAT(std::get<FingerprintsDiffer>(refused).message,
             Catch::Contains("2 environments, which differ in cpu_model, driver;"));

  const Report mixed = merged(reports, MixedEnvironments::kKeepApart).report;
  CHECK(mixed.points.size() == 2);
  CHECK(mixed.provenance.environment.cpu_model == std::nullopt);
  CHECK(mixed.provenance.environment.cpu_cores == 2);
  // The merged fingerprint differs from the fingerprints of both sources, so no report is compared
  // with it by mistake.
  for (const ReportSource& source : mixed.sources) {
    CHECK(source.points.size() == 1);
    CHECK(fingerprint(source.provenance.environment) != fingerprint(mixed.provenance.environment));
  }
}

TEST_CASE("reports merge although host names and current clocks differ") {
  Provenance other = sample_provenance();
  other.environment.hostname = "elsewhere";
  other.environment.sm_clock_mhz = 1980;
  other.environment.device_uuid = "GPU-other";  // another GPU of the same kind
  other.environment.variables = {{"OMP_NUM_THREADS", "4"}};
  const Report both =
      merged({single(sample_point("none")), single(sample_point("full"), other)}).report;
  CHECK(both.points.size() == 2);
  CHECK(both.provenance.environment.variables.empty());
}

// The repeats of policy `none` have losses 1.5, 1.5 and 0 in shard 0, and 1.5, 1.5 and 1 in shard
// 1.
TEST_CASE("merging keeps each repeat of the reference exactly once") {
  const std::vector<RepeatRecord> repeats = merged({shard(0), shard(1), shard(0)}).report.repeats;
  std::multiset<double> losses;
  for (const RepeatRecord& repeat : repeats) losses.insert(repeat.steps.at(0).loss.value());
  CHECK(losses == std::multiset<double>{0, 1, 1.5, 1.5});
}

TEST_CASE("reports do not merge if two measurements of a point differ in a reproducible value") {
  CHECK(rejection({}) == "nothing to merge: give one report or more");
  const auto differing = [](const std::function<void(PointRecord&)>& change) {
    PointRecord other = sample_point("none");
    change(other);
    return rejection({single(sample_point("none")), single(other)});
  };
  CHECK(differing([](PointRecord& point) { point.time.reset(); }) == "merged");
  CHECK(differing([](PointRecord& point) { point.memory->peak_reserved = Bytes{1}; }) == "merged");
  CHECK_THAT(differing([](PointRecord& point) { point.memory->peak_allocated = Bytes{1}; }),
             Catch::Contains("point none") && Catch::Contains("differs in \"memory\""));
  CHECK_THAT(differing([](PointRecord& point) { point.steps[0].loss_bits = "0x00000000"; }),
             Catch::Contains("differs in \"steps\""));
  CHECK_THAT(differing([](PointRecord& point) { point.status = PointStatus::kInvalid; }),
             Catch::Contains("differs in \"status\""));
  CHECK_THAT(differing([](PointRecord& point) { ++point.counts->by_op[0]["aten::addmm"]; }),
             Catch::Contains("differs in \"ops\""));
  // The key is from a newer version. Checks both orders of the two points.
  for (const int nanoseconds : {-1, 1}) {
    CHECK_THAT(differing([&](PointRecord& point) {
                 point.time->samples[0][0] += std::chrono::nanoseconds(nanoseconds);
                 point.unknown["/newer"] = "7";
               }),
               Catch::Contains("differs in \"newer\""));
  }
}

// In one of the two shards, the reference `none` did not finish. The merged report keeps the other
// shard's finished reference.
TEST_CASE(
    "a point that finished in one report is kept, even if the point failed in another report") {
  const auto ended = [](PointStatus status) {
    PointRecord point = sample_oom("none");
    point.identity = sample_point("none").identity;
    point.status = status;
    return point;
  };
  Report second = shard(1);
  for (const PointStatus status :
       {PointStatus::kOom, PointStatus::kTimeout, PointStatus::kCrash, PointStatus::kSkipped}) {
    CAPTURE(to_string(status));
    second.points[0] = ended(status);
    const MergedReport both = merged({second, shard(0)});
    REQUIRE(both.report.points.size() == kPolicies.size());
    CHECK(both.report.points[0].status == PointStatus::kOk);
    CHECK(both.notes ==
          std::vector<std::string>{"point none ended " + std::string(to_string(status)) +
                                   " in one of the reports; the kept point ended ok"});
    CHECK(bytes_of(merged({shard(0), second}).report) == bytes_of(both.report));
    CHECK(bytes_of(merged({both.report, second}).report) == bytes_of(both.report));
  }
  // Failed points contain no measurements, so they cannot contradict each other.
  const MergedReport failed =
      merged({single(ended(PointStatus::kCrash)), single(ended(PointStatus::kOom))});
  CHECK(failed.report.points.at(0).status == PointStatus::kOom);
  CHECK(failed.notes.size() == 1);
}

TEST_CASE("two policies with the same plan have the same key, but remain two points") {
  PointRecord same_plan = sample_point("none");
  same_plan.policy = "skip_list([])";
  CHECK(merged({single(sample_point("none")), single(same_plan)}).report.points.size() == 2);
}

// Each of the two sweeps lists comparisons that it did not measure. The other sweep measured some
// of them, and failed to measure others.
TEST_CASE(
    "comparisons that no sweep measured stay listed, in an order that does not depend on the order "
    "of inputs") {
  const auto unmeasured = [](std::uint64_t seed, const char* outcome) {
    const PointIdentity none = sample_point("none").identity;
    return UnmeasuredComparison{none.model, none.dimensions, none.dtype, seed,
                                {"none"},   outcome,         "why"};
  };
  Report first = single(sample_point("none"));
  const std::uint64_t measured = first.points[0].identity.seed;
  Report second = single(sample_point("none"));
  second.points[0].identity.seed = 77;
  first.unmeasured = {unmeasured(9, "skipped"), unmeasured(77, "failed"), unmeasured(8, "missing")};
  second.unmeasured = {unmeasured(measured, "failed"), unmeasured(9, "failed")};
  const Report both = merged({first, second}).report;
  CHECK(both.unmeasured == std::vector{unmeasured(8, "missing"), unmeasured(9, "failed")});
  CHECK(bytes_of(merged({second, first}).report) == bytes_of(both));
  CHECK(bytes_of(merged({first}).report) == bytes_of(first));
  CHECK(validate(report_to_json(both)) == std::nullopt);
  CHECK(bytes_of(report_from_json(report_to_json(both))) == bytes_of(both));
}

}  // namespace rematch
