// Tests `rematch compare` as a user calls it: exit codes, streams and bad input.
#include <algorithm>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/reports/sample_sweep.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

class Reports {
 public:
  Reports() : base(scratch_.file("base.json")), other(scratch_.file("other.json")) {
    report_ = Report{sample_provenance(), {sample_point("none"), sample_point("full")}, {}};
    write_json_file(base, report_to_json(report_));
    report_.points[1].memory->peak_allocated =
        *report_.points[1].memory->peak_allocated + Bytes{4096};
    write_json_file(other, report_to_json(report_));
  }
  // Writes the second report as if it had been measured with a different LibTorch.
  std::string with_other_library() {
    report_.provenance.environment.libtorch_version = "2.12.0";
    const std::string file = scratch_.file("mixed.json");
    write_json_file(file, report_to_json(report_));
    return file;
  }
  std::string without_points() { return written({report_.provenance, {}, {}}, "empty.json"); }
  std::string without_peak() {
    Report report = report_;
    report.points[0].memory->peak_allocated.reset();
    report.points[1].memory->peak_allocated.reset();
    return written(report, "bare.json");
  }
  // Writes a report with noisy step times. The ratio of policy `full` to policy `none` may be below
  // 0.5 or above 8.
  std::string with_noise() {
    Report report = report_;
    report.points[1].time->samples.clear();
    report.points[1].time->step_median.reset();
    for (const int milliseconds : {7, 48, 18, 18}) {
      report.points[1].time->samples.push_back({std::chrono::milliseconds(milliseconds)});
    }
    return written(report, "noisy.json");
  }
  std::string with_text(const std::string& text) {
    const std::string file = scratch_.file("text.json");
    write_file_atomically(file, text);
    return file;
  }

 private:
  std::string written(const Report& report, const std::string& name) {
    const std::string file = scratch_.file(name);
    write_json_file(file, report_to_json(report));
    return file;
  }
  ScratchFolder scratch_;
  Report report_;

 public:
  std::string base;
  std::string other;
};

// The base sweep has 11 shapes of llama_small and one shape of wan_small, with 4 policies each. In
// the candidate sweep, points of llama_small with seed 7 replace the points of wan_small.
TEST_CASE("two sweeps are compared point by point, and points in only one sweep are named") {
  const ScratchFolder scratch;
  Report base = representative_sweep();
  Report candidate = base;
  for (PointRecord& point : candidate.points) {
    if (point.identity.model != "wan_small") continue;
    point.identity = candidate.points.front().identity;
    point.identity.plan_sha256 = sample_point(point.policy).identity.plan_sha256;
    point.identity.seed = 7;
  }
  // Changes a peak of policy `full`.
  candidate.points[5].memory->peak_allocated = Bytes{123 << 20};
  // Makes the reports look merged, as if each shape was run by its own command.
  for (Report* report : {&base, &candidate}) {
    for (std::size_t from = 0; from < report->points.size(); from += 4) {
      report->sources.push_back({report->provenance, {from, from + 1, from + 2, from + 3}});
      report->sources.back().provenance.command = {"rematch", "run", std::to_string(from)};
    }
    std::reverse(report->sources.begin(), report->sources.end());
  }
  std::rotate(candidate.points.begin(), candidate.points.begin() + 8, candidate.points.end());
  write_json_file(scratch.file("base.json"), report_to_json(base));
  write_json_file(scratch.file("other.json"), report_to_json(candidate));
  const std::string both = scratch.file("base.json") + " " + scratch.file("other.json");
  const Outcome outcome = rematch("compare " + both + " --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json record = Json::parse(outcome.out);
  // 43 of the 44 points of llama_small have a peak and a step time. The other point ran out of
  // memory in both reports, so compare does not count it as a new failure.
  int num_peaks_that_differ = 0;
  for (const Json& row : record["rows"]) {
    CHECK(row["model"] == "llama_small");
    for (const Json& metric : row["metrics"]) {
      if (metric["verdict"] != "higher") continue;
      ++num_peaks_that_differ;
      CHECK(row["policy"] == "full");
      CHECK(row["dimensions"]["tokens"] == 16);
    }
  }
  CHECK(num_peaks_that_differ == 1);
  CHECK(record["rows"].size() == 43);
  const std::string text = rematch("compare " + both).out;
  CHECK_THAT(text, Catch::Contains("Only in the base: wan_small full") &&
                       Catch::Contains("Only in the candidate: llama_small full"));
  CHECK(rematch("compare " + both + " --fail-on missing").code == 3);
}

}  // namespace

TEST_CASE("compare prints a table and succeeds unless --fail-on is given") {
  const Reports reports;
  const Outcome plain = rematch("compare " + reports.base + " " + reports.other);
  CHECK(plain.code == 0);
  CHECK(plain.err.empty());
  CHECK_THAT(plain.out, Catch::Contains("Verdict: 2 rows"));
  const Outcome failed =
      rematch("compare " + reports.base + " " + reports.other + " --fail-on slower,peak");
  CHECK(failed.code == 3);
  CHECK(failed.err == "rematch: fails on peak\n");
  CHECK(failed.out == plain.out);
  const std::string tolerant = " --fail-on peak --threshold peak_allocated=4KiB";
  CHECK(rematch("compare " + reports.base + " " + reports.other + tolerant).code == 0);
}

TEST_CASE("compare fails if a condition of --fail-on cannot be decided") {
  Reports reports;
  const auto inconclusive = [&](const std::string& candidate, const std::string& fail_on,
                                const std::string& part) {
    const Outcome outcome =
        rematch("compare " + reports.base + " " + candidate + " --fail-on " + fail_on);
    CAPTURE(fail_on, outcome.err);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Catch::StartsWith("rematch: inconclusive") && Catch::Contains(part));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    CHECK_THAT(outcome.out, Catch::Contains("undecided: "));
  };
  inconclusive(reports.without_points(), "slower,peak,counts", "no point finished in both reports");
  inconclusive(reports.without_peak(), "peak", "peak allocated was not measured in the candidate");
  inconclusive(reports.with_noise(), "slower", "is within noise for full on_demand");
  // If one condition of --fail-on holds, it decides the exit code, even if another condition is
  // undecided.
  CHECK(rematch("compare " + reports.base + " " + reports.with_noise() + " --fail-on slower,peak")
            .code == 3);
  const Outcome nothing = rematch("compare " + reports.base + " " + reports.without_points());
  CHECK(nothing.code == 4);
  CHECK_THAT(nothing.err, Catch::Contains("no point finished in both reports"));
}

TEST_CASE("the JSON of compare goes to stdout and to the requested file") {
  const Reports reports;
  const ScratchFolder scratch;
  const std::string file = scratch.file("compare.json");
  const Outcome outcome =
      rematch("compare " + reports.base + " " + reports.other + " --json -o " + file);
  CHECK(outcome.code == 0);
  CHECK(parse_json(outcome.out, "stdout") == read_json_file(file));
  CHECK(rematch("validate " + file).code == 0);
  const Outcome markdown = rematch("compare " + reports.base + " " + reports.other + " --markdown");
  CHECK_THAT(markdown.out, Catch::Contains("| policy | schedule | step time |"));
}

TEST_CASE("reports of different environments are compared only on request") {
  Reports reports;
  const std::string mixed = reports.with_other_library();
  const Outcome refused = rematch("compare " + reports.base + " " + mixed);
  CHECK(refused.code == 6);
  CHECK(is_one_clear_line(refused));
  CHECK_THAT(refused.err, Catch::Contains("libtorch_version unknown and 2.12.0"));
  const Outcome allowed = rematch("compare " + reports.base + " " + mixed + " --allow-mixed");
  CHECK(allowed.code == 0);
  CHECK_THAT(allowed.out, Catch::Contains("libtorch_version"));
}

TEST_CASE("compare rejects unusable inputs with a one-line error and exit code 2") {
  Reports reports;
  const std::string both = reports.base + " " + reports.other;
  const auto refuses = [](const std::string& arguments, const std::string& part) {
    const Outcome outcome = rematch("compare " + arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(is_one_clear_line(outcome));
    CHECK_THAT(outcome.err, Catch::Contains(part));
  };
  refuses(reports.base, "compare takes two reports");
  refuses(reports.base + " nowhere.json", "cannot read 'nowhere.json'");
  refuses(both + " --metric step_tme", "did you mean 'step_time'");
  refuses(both + " --metric step_time,", "empty part");
  refuses(both + " --metric 'step_time,loss)'", "are unbalanced");
  refuses(both + " --threshold 2", "unit");
  refuses(both + " --threshold 1ms+2%", "percentage first");
  refuses(both + " --threshold peak_allocated=1ms", "is not a size");
  refuses(both + " --threshold 200%", "up to 100%");
  refuses(both + " --fail-on slow", "did you mean 'slower'");
  refuses(both + " --fail-on slower --metric loss", "add step_time to --metric");
  refuses(both + " --false-alarms 0%", "above 0%");
  refuses(both + " --json --markdown", "not both");
  refuses(both + " -o /nowhere/compare.json", "there is no folder");
  const std::string text = reports.with_text("{\"schema\": \"rematch.plan/1.0\"}");
  refuses(reports.base + " " + text, text + ": file has schema \"rematch.plan/1.0\"");
}

}  // namespace rematch::testing
