// Tests `rematch gate` as a user calls it: exit codes, streams and bad input.
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// A report of two points, each with two steps whose losses are finite.
std::string write_report(const ScratchFolder& scratch) {
  Report report{sample_provenance(), {sample_point("none"), sample_point("full")}, {}, {}};
  for (PointRecord& point : report.points) {
    StepRecord step = point.steps.front();
    point.steps = {step, step};
  }
  const std::string file = scratch.file("report.json");
  write_json_file(file, report_to_json(report));
  return file;
}

}  // namespace

TEST_CASE("the exit code of gate is its verdict") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch);
  const std::string against = report + " --reference " + report;
  const Outcome passed = rematch("gate " + against + " --loss bitwise");
  CHECK(passed.code == 0);
  CHECK(passed.err.empty());
  CHECK_THAT(passed.out, Catch::Contains("PASS: 1 of 1 points pass."));
  CHECK(rematch("gate " + report + " --max-peak-bytes 99MiB").code == 3);
  CHECK(rematch("gate " + report + " --max-peak-bytes 100MiB").code == 0);
  CHECK(rematch("gate " + against + " --loss envelope").code == 4);
  CHECK(rematch("gate " + report + " --policy none,full --expect matmul=1920").code == 0);
  CHECK_THAT(rematch("gate " + report + " --policy none,full --expect matmul=1920").out,
             Catch::Contains("2 of 2 points pass"));
  CHECK(rematch("gate " + report + " --expect aten::nosuch=0").code == 4);
  CHECK(rematch("gate " + report + " --policy full --expect matmul=1920,aten::mm=1280").code == 0);
}

TEST_CASE("the JSON of gate goes to stdout and to the requested file") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch);
  const std::string file = scratch.file("gate.json");
  const Outcome outcome = rematch("gate " + report + " --reference " + report +
                                  " --max-loss-difference 0.001 --json -o " + file);
  CHECK(outcome.code == 0);
  const Json json = parse_json(outcome.out, "stdout");
  CHECK(json == read_json_file(file));
  CHECK(json["points"][0]["checks"][0]["noise"]["status"] == "not_measured");
  CHECK(rematch("validate " + file).code == 0);
}

TEST_CASE("gate rejects unusable inputs with a one-line error and exit code 2") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch);
  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = rematch("gate " + report + " " + arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(is_one_clear_line(outcome));
    CHECK_THAT(outcome.err, Catch::Contains(part));
  };
  const std::string against = "--reference " + report + " ";
  refuses("", "nothing to gate on");
  refuses("--loss bitwise", "need --reference");
  refuses("--loss bitwse " + against, "did you mean 'bitwise'");
  refuses("--loss bitwise --reference nowhere.json", "cannot read 'nowhere.json'");
  refuses("--max-loss-difference -1 " + against, "is not a number above 0");
  refuses("--max-loss-difference 1e999 " + against, "is not a number above 0");
  refuses("--max-slowdown fast " + against, "is not a number above 0");
  refuses("--max-peak-bytes 24Gb", "is not a size");
  refuses("--expect attention_forward", "not of the form NAME=COUNT");
  refuses("--expect attention_forward=-1", "not of the form NAME=COUNT");
  refuses("--expect attention=1", "did you mean");
  refuses("--policy fulll --expect matmul=1",
          "--policy 'fulll' does not occur in the report; did you mean 'full'");
  refuses("--policy none,nobody --expect matmul=1", "known: full, none");
  refuses("--reference-policy nne --loss bitwise " + against, "did you mean 'none'");
  refuses("--margin 0.1 --max-peak-bytes 1GiB", "require --loss equivalence");
  refuses("--loss equivalence --window 0 " + against, "--window");
  refuses("--loss equivalence --window 3 " + against, "allowed: 1 to 2");
  refuses("--max-peak-bytes 1GiB --json --markdown", "not both");
}

}  // namespace rematch::testing
