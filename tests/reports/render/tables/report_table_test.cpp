#include "reports/render/tables/report_table.h"

#include <algorithm>
#include <sstream>

#include "reports/render/tables/grid.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::sample_oom;
using testing::sample_point;
using testing::sample_provenance;
using testing::sample_recomputing;

constexpr Bytes kMiB{1 << 20};

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

// Returns a report with both schedules, a failed point, different bits and unreliable times.
Report comparison_report() {
  Report report{sample_provenance(), {}, {}};
  report.points.push_back(sample_point("none"));
  report.points.push_back(sample_recomputing("full", 8, Bytes{30 * kMiB.count}, 1.31));
  report.points.push_back(
      sample_recomputing("full", 8, Bytes{28 * kMiB.count}, 1.35, Schedule::kWholeRegion));
  report.points.push_back(sample_recomputing("nth_first(2)", 4, Bytes{15 * kMiB.count}, 1.16));
  PointRecord different = sample_recomputing("save_mm", 8, Bytes{20 * kMiB.count}, 1.12);
  different.parity->gradient_bits_equal = false;
  different.parity->first_different_step = 2;
  different.parity->first_different_tensor = "blocks.3.attention.wq.weight";
  report.points.push_back(different);
  PointRecord noisy = sample_recomputing("attn_only", 0, Bytes{22 * kMiB.count}, 1.01);
  noisy.time->quality = TimeQuality{"noisy", 0.12, 0.0, {"steps of one process spread by 12.0 %"}};
  report.points.push_back(noisy);
  report.points.push_back(sample_oom("save_compute"));
  return report;
}

// The model has few tokens, so optimizer state dominates the peak, and no policy can lower it.
Report bound_report() {
  Report report{sample_provenance(), {}, {}};
  for (const char* policy : {"none", "full"}) {
    PointRecord point = std::string(policy) == "none"
                            ? sample_point(policy)
                            : sample_recomputing(policy, 8, Bytes{}, 1.28);
    point.memory->peak_phase = Phase::kOptimizer;
    point.memory->peak_scope.clear();
    point.memory->holders_at_peak = {{Holder::kParameters, Bytes{40 * kMiB.count}},
                                     {Holder::kOptimizer, Bytes{50 * kMiB.count}},
                                     {Holder::kGradients, Bytes{10 * kMiB.count}}};
    report.points.push_back(point);
  }
  return report;
}

}  // namespace

TEST_CASE("the table of a representative report as text equals the approved file", "[golden]") {
  const std::string text = render_table(comparison_report(), TableFormat::kText);
  testing::check_golden("render/comparison.txt", text);
  CHECK(longest_line(text) <= 120);
}

TEST_CASE("the table of a representative report as markdown equals the approved file", "[golden]") {
  testing::check_golden("render/comparison.md",
                        render_table(comparison_report(), TableFormat::kMarkdown));
}

TEST_CASE("the table of a model whose peak no policy can lower equals the approved file",
          "[golden]") {
  testing::check_golden("render/bound.txt", render_table(bound_report(), TableFormat::kText));
}

TEST_CASE("a narrow table moves columns into the detail line without dropping any", "[golden]") {
  const std::string text = render_table(comparison_report(), TableFormat::kText, 90);
  testing::check_golden("render/narrow.txt", text);
  // The command at the end may be longer, because it is meant to be copied.
  CHECK(longest_line(text.substr(0, text.find("Reproduce with"))) <= 90);
  CHECK_THAT(text, Catch::Contains("95.0 MiB"));
}

TEST_CASE("the table of a report fits a terminal of 80 columns") {
  const std::string text = render_table(comparison_report(), TableFormat::kText, 80);
  CHECK(longest_line(text.substr(0, text.find("Reproduce with"))) <= 80);
}

TEST_CASE("every point has a row, and failures are counted") {
  const Report report = comparison_report();
  const std::string text = render_table(report, TableFormat::kText);
  for (const PointRecord& point : report.points) {
    CHECK_THAT(text, Catch::Contains("\n" + point.policy + " "));
  }
  CHECK_THAT(text, Catch::Contains("1 of 7 points did not finish: save_compute on_demand (oom "
                                   "at 90.0 MiB)."));
}

TEST_CASE("the noise line names the point that is the reference") {
  Report report = comparison_report();
  const auto text = [&report] { return render_table(report, TableFormat::kText, 1000); };
  CHECK_THAT(text(),
             Catch::Contains("the two timings of none on_demand differ by -1.2 % to +2.1 %"));
  report.points[0].time->control->interval.reset();
  CHECK_THAT(text(),
             Catch::Contains("the two timings of none on_demand differ by +0.3 %, in one round"));
  report.points[0].time->control.reset();
  CHECK(text().find("A/A") == std::string::npos);
  report.points[1].time->control = ControlRecord{1, {{0.9, 1.1}}};
  CHECK_THAT(text(), Catch::Contains("the two timings of full on_demand differ by -10 % to +10 %"));
}

TEST_CASE("MFU is shown beside the step time if it is known") {
  Report report = comparison_report();
  const auto text = [&report] { return render_table(report, TableFormat::kMarkdown); };
  CHECK(text().find("MFU") == std::string::npos);
  report.points[1].model_flops_utilization = 0.4123;
  CHECK_THAT(text(), Catch::Contains("| step / none | MFU | parity |") &&
                         Catch::Contains("] | 41.2 % | equal |") &&
                         Catch::Contains(" | - | DIFFERENT |") &&
                         Catch::Contains("MFU: matmul and attention flops"));
}

TEST_CASE("the table says if timed steps and counted steps ran different attention kernels") {
  Report report = comparison_report();
  const auto text = [&report] { return render_table(report, TableFormat::kText, 1000); };
  CHECK(text().find("attention, which LibTorch chooses") == std::string::npos);
  report.points[1].time->attention_backend = "cudnn";
  CHECK_THAT(text(), Catch::Contains("Times use cudnn attention, which LibTorch chooses"));
}

TEST_CASE("the peaks of timed steps are shown beside the peaks of the memory pass") {
  Report report = comparison_report();
  report.points[0].time->peak_allocated = Bytes{100 * kMiB.count};
  report.points[0].time->peak_reserved = Bytes{120 * kMiB.count};
  const std::string text = render_table(report, TableFormat::kText, 200);
  CHECK_THAT(text, Catch::Contains("timed steps: 100 MiB allocated, 120 MiB reserved at most"));
  report.points[0].time->peak_reserved.reset();
  CHECK_THAT(render_table(report, TableFormat::kText, 200), !Catch::Contains("timed steps"));
}

TEST_CASE("the reference for bits is named if it is not the requested reference") {
  Report report = comparison_report();
  report.points[1].parity->reference = "full";
  report.points[1].parity->reference_reason = "none ended oom";
  CHECK_THAT(render_table(report, TableFormat::kText, 1000),
             Catch::Contains("; compared with full"));
  CHECK_THAT(render_table(report, TableFormat::kText, 1000), !Catch::Contains("none ended oom"));
}

TEST_CASE("points of different models are compared separately") {
  Report report = comparison_report();
  PointRecord other = sample_recomputing("full", 8, Bytes{30 * kMiB.count}, 1.3);
  other.identity.model = "llama_small";
  report.points = {sample_point("none"), other};
  const std::string text = render_table(report, TableFormat::kText);
  CHECK_THAT(text, Catch::Contains("wan_small on cpu"));
  CHECK_THAT(text, Catch::Contains("llama_small on cpu"));
  CHECK_THAT(text,
             Catch::Contains("nothing to compare with: this report has no point of policy none"));
}

TEST_CASE("a pipe character in a reason does not end a markdown cell") {
  Report report{sample_provenance(), {sample_oom("full")}, {}};
  report.points[0].reason = "a|b";
  CHECK_THAT(render_table(report, TableFormat::kMarkdown), Catch::Contains("a\\|b"));
}

TEST_CASE("markdown escapes markup in a report") {
  CHECK(table::markdown_text("<img src=x onerror=alert(1)>") ==
        "&lt;img src=x onerror=alert(1)&gt;");
  CHECK(table::markdown_text("a&lt;b\nc") == "a&amp;lt;b c");
  CHECK(table::markdown_text("![x](http://y)") == "![x]\\(http://y)");
  CHECK(table::markdown_text("nth_last(2) [0.9 1.1]") == "nth_last(2) [0.9 1.1]");
  Report report = comparison_report();
  const std::string script = "<script>`x`</script>";
  for (PointRecord& point : report.points) {
    point.identity.model = script;
    point.policy += script;
    point.reason = script;
  }
  report.provenance.reproduce = script;
  report.provenance.environment.cpu_model = script;
  const std::string text = render_table(report, TableFormat::kMarkdown);
  CHECK(text.find("<script") == std::string::npos);
  CHECK_THAT(text, Catch::Contains("&lt;script&gt;"));
  CHECK_THAT(render_table(report, TableFormat::kText), Catch::Contains(script));
}

TEST_CASE("the table of an empty report says that it has no points") {
  CHECK_THAT(render_table(Report{}, TableFormat::kText),
             Catch::StartsWith("The report has no points."));
}

}  // namespace rematch
