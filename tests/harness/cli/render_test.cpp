// Tests `rematch render` on good and bad report files.
#include <filesystem>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/trace_json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

std::string write_report(const ScratchFolder& scratch, const std::string& name) {
  Report report{sample_provenance(), {sample_point("none"), sample_point("full")}, {}};
  const std::string file = scratch.file(name);
  write_json_file(file, report_to_json(report));
  return file;
}

TEST_CASE("a report becomes a page, on stdout or in a file") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch, "r.json");
  const Outcome shown = rematch("render " + report);
  CHECK(shown.code == 0);
  CHECK(shown.err.empty());
  CHECK_THAT(shown.out, Catch::StartsWith("<!DOCTYPE html>"));
  const std::string page = scratch.file("page.html");
  const Outcome written = rematch("render " + report + " -o " + page);
  CHECK(written.code == 0);
  CHECK(written.out.empty());
  CHECK(text_of(page) == shown.out);
}

TEST_CASE("several reports become one page") {
  const ScratchFolder scratch;
  const std::string files = write_report(scratch, "a.json") + " " + write_report(scratch, "b.json");
  const Outcome shown = rematch("render " + files);
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Catch::Contains("a.json") && Catch::Contains("b.json"));
}

TEST_CASE("a report becomes markdown, CSV or one chart") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch, "r.json");
  CHECK_THAT(rematch("render --markdown " + report).out, Catch::Contains("| policy |"));
  CHECK_THAT(rematch("render --csv " + report).out,
             Catch::StartsWith("report,git_commit,git_dirty,model,"));
  for (const char* chart :
       {"front", "memory", "attention", "matmul", "holders", "time", "ratio", "loss"}) {
    const Outcome svg = rematch("render " + report + " --svg " + chart);
    CAPTURE(chart, svg.err);
    if (std::string(chart) == "ratio")
      continue;  // all points of this report are references, so
                 // there are no ratios
    CHECK(svg.code == 0);
    CHECK_THAT(svg.out, Catch::StartsWith("<svg "));
  }
}

TEST_CASE("a searched front becomes a page, markdown or one picture") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  write_json_file(trace, trace_to_json(toy_llama({.layers = 3, .tokens = 64})));
  const std::string front = scratch.file("front.json");
  const Outcome searched =
      rematch("search --device h100 --points 4 --baselines full --trace " + trace + " -o " + front);
  REQUIRE(searched.code == 0);
  CHECK_THAT(rematch("render " + front).out, Catch::StartsWith("<!DOCTYPE html>") &&
                                                 Catch::Contains("Device minus reserve 65.5 GiB"));
  CHECK_THAT(rematch("render " + front + " " + write_report(scratch, "r.json")).out,
             Catch::Contains("on h100,<wbr> searched: front.json</a>") &&
                 Catch::Contains("wan_small on cpu: r.json</a>"));
  CHECK_THAT(rematch("render --markdown " + front).out, Catch::Contains("| baseline |"));
  CHECK_THAT(rematch("render --svg front " + front).out, Catch::StartsWith("<svg "));
  CHECK_THAT(rematch("render --csv " + front).out,
             Catch::StartsWith("front,git_commit,git_dirty,model,device,"));
  check_usage_error("render --csv " + front + " " + write_report(scratch, "r.json"),
                    "call --csv once for each kind");
  check_usage_error("render --svg memory " + front, "write --svg front");
}

TEST_CASE("a compare record becomes a page, markdown, CSV or one chart") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch, "r.json");
  const std::string record = scratch.file("c.json");
  REQUIRE(rematch("compare " + report + " " + report + " --json -o " + record).code == 0);
  CHECK_THAT(rematch("render " + record).out,
             Catch::Contains("Compared: c.json") && Catch::Contains("The same in every row: "));
  CHECK_THAT(rematch("render --markdown " + record).out, Catch::Contains("| policy |"));
  CHECK_THAT(rematch("render --csv " + record).out, Catch::StartsWith("comparison,base_report,") &&
                                                        Catch::Contains(",peak_allocated_bytes,"));
  CHECK_THAT(rematch("render --svg peak_allocated " + record).out, Catch::StartsWith("<svg "));
  check_usage_error("render --svg peak_alocated " + record, "did you mean 'peak_allocated'");
  check_usage_error("render --svg recomputed_ops " + record, "no ratio of recomputed ops");
  check_usage_error("render --csv " + record + " " + report, "call --csv once for each kind");
}

TEST_CASE("render rejects unsupported requests with a one-line error") {
  const ScratchFolder scratch;
  const std::string report = write_report(scratch, "r.json");
  check_usage_error("render", "no report given");
  check_usage_error("render " + scratch.file("missing.json"), "missing.json");
  check_usage_error("render " + report + " --svg frnt", "did you mean 'front'");
  check_usage_error("render " + report + " --csv --markdown", "give one of --svg");
  check_usage_error("render " + report + " " + report + " --svg front", "one file, not 2");
  check_usage_error("render " + report + " -o /no/such/folder/page.html", "/no/such/folder");
  const std::string plan = scratch.file("plan.json");
  write_file_atomically(plan, "{\"schema\": \"rematch.plan/1.0\"}");
  check_usage_error("render " + plan, "plan.json");
  const std::string broken = scratch.file("broken.json");
  write_file_atomically(broken, text_of(report).substr(0, 2000));
  check_usage_error("render " + broken + " -o " + scratch.file("page.html"), "broken.json");
  CHECK_FALSE(std::filesystem::exists(scratch.file("page.html")));
}

}  // namespace
}  // namespace rematch::testing
