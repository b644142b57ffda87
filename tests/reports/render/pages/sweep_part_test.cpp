// Tests pages of sweeps.
#include "reports/render/pages/parts.h"

#include <regex>
#include <set>

#include "reports/render/charts/plane.h"
#include "reports/render/pages/elements.h"
#include "reports/render/pages/page.h"
#include "tests/reports/sample_report.h"
#include "tests/reports/sample_sweep.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

std::string sweep_page(const Report& report) { return render_page({{"sweep.json", report}}); }

std::vector<std::string> all_between(const std::string& text, const std::string& before,
                                     const std::string& after) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    found.push_back(text.substr(at, text.find(after, at) - at));
  }
  return found;
}

TEST_CASE("the page of a sweep is an HTML document") {
  const std::string page = sweep_page(testing::representative_sweep());
  testing::keep_page("sweep.html", page);
  CHECK_THAT(page, Catch::StartsWith("<!DOCTYPE html>"));
}

TEST_CASE("a sweep's page lists failed, skipped and missing comparisons, with the reason") {
  const std::string page = sweep_page(testing::representative_sweep());
  CHECK_THAT(page, Catch::Contains(">skipped<") && Catch::Contains(">failed<") &&
                       Catch::Contains(">not measured<") && Catch::Contains(">oom<"));
  CHECK_THAT(page, Catch::Contains("The lowest predicted peak is 80&nbsp;GiB") &&
                       Catch::Contains("Ended by signal 9: &lt;b&gt;killed"));
  CHECK_THAT(page, Catch::Contains("tokens 32, <wbr>batch 2") ||
                       Catch::Contains("tokens 32, batch 2, seed 1"));
}

TEST_CASE("verdicts on a sweep's page are understandable without a legend") {
  const std::string page = sweep_page(testing::representative_sweep());
  CHECK_THAT(page, Catch::Contains(">lower peak<") && Catch::Contains("reference: "));
  for (const char* unclear : {">lowers<", ">as full<", ">no saving<", ">at floor<", ">alone<"}) {
    CAPTURE(unclear);
    CHECK_THAT(page, !Catch::Contains(unclear));
  }
}

TEST_CASE("every link of a sweep's page has a target, even in folded parts") {
  for (const Report& report : {testing::representative_sweep(), testing::large_sweep(4)}) {
    const std::string page = sweep_page(report);
    const std::vector<std::string> anchors = all_between(page, " id=\"", "\"");
    const std::set<std::string> distinct(anchors.begin(), anchors.end());
    CHECK(distinct.size() == anchors.size());
    for (const std::string& link : all_between(page, "<a href=\"#", "\"")) {
      CAPTURE(link);
      CHECK(distinct.count(link) == 1);
    }
  }
}

// The ratio of the reference to itself is 1, without an interval.
TEST_CASE(
    "headings of a sweep name the dimensions that differ, and the reference's ratio has no "
    "interval") {
  Report report{testing::sample_provenance(), {}, {}};
  for (const int tokens : {64, 128}) {
    for (const char* policy : {"none", "full"}) {
      PointRecord point = testing::sample_point(policy);
      point.identity.dimensions["tokens"] = tokens;
      report.points.push_back(point);
    }
  }
  const std::string page = sweep_page(report);
  const std::vector<std::string> headings = all_between(page, "<h2>", "</h2>");
  REQUIRE(headings.size() == 3);
  CHECK_THAT(headings[1], Catch::EndsWith("tokens 64"));
  CHECK_THAT(headings[2], Catch::EndsWith("tokens 128"));
  CHECK_THAT(page, !Catch::Contains("1.00 ?"));
}

// Each of five models has 100 comparisons: 10 numbers of tokens times 10 batch sizes. Each batch
// size has three heat maps, with a column for each number of tokens.
TEST_CASE(
    "a page of 500 comparisons begins with an overview and has one folded section per comparison") {
  const std::string page = sweep_page(testing::large_sweep(500));
  CHECK(page.size() < 6'000'000);
  CHECK(all_between(page, "<section id=", ">").size() == 5);
  CHECK(all_between(page, "<table class=\"heat\">", "</table>").size() == 5 * 3 * 10);
  CHECK(all_between(page, "<div id=\"m", "\"").size() == 500);
  CHECK(all_between(page, "<svg ", ">").size() == 5 * 24);
  // Removes folded content, and checks that the rest is short.
  std::string open = page;
  for (int depth = 0; depth < 3; ++depth) {
    std::string rest;
    std::size_t from = 0;
    for (std::size_t at = open.find("<details"); at != std::string::npos;
         at = open.find("<details", from)) {
      const std::size_t next = open.find("<details", at + 1);
      const std::size_t end = open.find("</details>", at);
      rest += open.substr(from, at - from);
      from = next < end ? at + 8 : end + 10;
      if (next < end) rest += "<details";
    }
    open = rest + open.substr(from);
  }
  CHECK(all_between(open, "<table class=\"heat\">", "</table>").size() == 5 * 3 * 6);
  CHECK(all_between(open, "<svg ", ">").size() == 5 * 6);
  CHECK(open.find("<div id=\"m") == std::string::npos);
  CHECK_THAT(page, Catch::Contains("Shown: 24 of 100 comparisons"));
}

TEST_CASE("cells of a heat map are coloured text, and column titles link to the comparisons") {
  const page::HeatMap map{
      "tokens",
      {{"8", "s1"}, {"<16>", ""}},
      {{"full", {{"30 %", -4}, {"oom", 9}}}, {"none", {{"100 %", 0}, {"-", 0}}}}};
  const std::string text = page::heat_map(map);
  CHECK_THAT(text, Catch::Contains("<th><a href=\"#s1\">8</a></th><th>&lt;16&gt;</th>"));
  CHECK_THAT(text, Catch::Contains("<td class=\"g4\">30 %</td><td class=\"w5\">oom</td>"));
  CHECK_THAT(text, Catch::Contains("<td>100 %</td><td>-</td>"));
}

}  // namespace
}  // namespace rematch
