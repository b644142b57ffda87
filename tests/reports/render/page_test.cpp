#include "reports/render/page.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "policies/trace/file.h"
#include "reports/render/charts/chart.h"
#include "reports/render/csv.h"
#include "reports/render/table.h"
#include "tests/reports/render/sample_comparisons.h"
#include "tests/reports/render/sample_front.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

using testing::large_report;
using testing::telling_report;

// REMATCH_APPROVE=1 rewrites the file; the difference is read in review.
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = testing::in_tree("tests/golden/render/") + name;
  const char* approve = std::getenv("REMATCH_APPROVE");
  if (approve != nullptr && std::string(approve) == "1") write_file_atomically(path, text);
  std::ifstream file(path);
  std::stringstream wanted;
  wanted << file.rdbuf();
  CHECK((text == wanted.str()));  // not printed: it is long
}

std::string page_of(const Report& report) { return render_page({{"sample.json", report}}); }

// Elements that are open and never closed, or closed and never opened; empty: all in order.
std::string unbalanced(const std::string& page) {
  static const std::regex kTag("<(/?)([a-zA-Z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator tag(page.begin(), page.end(), kTag), end; tag != end; ++tag) {
    const std::string name = (*tag)[2];
    if (!(*tag)[3].str().empty() || name == "meta" || name == "link") continue;
    if ((*tag)[1].str().empty()) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> without its start";
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> without its end";
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the page of a telling report", "[golden]") {
  check_golden("page.html", page_of(telling_report()));
}

TEST_CASE("the page of a searched and measured front, and of one that was not run", "[golden]") {
  const std::string page = render_page(
      {}, {}, {{"front.json", testing::telling_front()}, {"p.json", testing::predicted_front()}});
  check_golden("searched.html", page);
  CHECK(unbalanced(page) == "");
  CHECK_THAT(page, !Catch::Contains("<script") && Catch::Contains("&lt;script&gt;"));
}

TEST_CASE("each chart as a file", "[golden]") {
  const Report report = telling_report();
  const auto comparisons = compare_policies(report);
  for (const std::string& name : chart_names()) {
    CAPTURE(name);
    const auto picture = draw_chart(name, comparisons.front(), report.provenance.environment);
    check_golden(name + ".svg", to_svg_file(std::get<Picture>(picture)));
  }
}

TEST_CASE("a telling report as CSV", "[golden]") {
  check_golden("points.csv", render_csv({{"sample.json", telling_report()}}));
}

TEST_CASE("names that mean something in markup are text everywhere") {
  const Report report = telling_report();
  const std::string page = page_of(report);
  CHECK_THAT(page, !Catch::Contains("<script") && !Catch::Contains("<img") &&
                       !Catch::Contains("<b>none") && !Catch::Contains("<aten"));
  CHECK_THAT(page, Catch::Contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"));
  CHECK(unbalanced(page) == "");
  // A file name is somebody's text as well, and so is every member of an environment.
  Report hostile = report;
  hostile.provenance.environment.cpu_model = "<svg/onload=alert(1)>";
  hostile.points[0].identity.model = "</title><script>";
  const std::string other = render_page({{"\"><script>.json", hostile}});
  CHECK_THAT(other, !Catch::Contains("<script") && !Catch::Contains("<svg/onload"));
  CHECK(unbalanced(other) == "");
}

TEST_CASE("the page loads nothing and runs nothing") {
  const std::string page = page_of(telling_report());
  CHECK_THAT(page, !Catch::Contains("http:") && !Catch::Contains("https:") &&
                       !Catch::Contains("src=\"") && !Catch::Contains("url(") &&
                       !Catch::Contains("@import") && !Catch::Contains(" onload"));
  CHECK_THAT(page, Catch::Contains("default-src 'none'"));
}

TEST_CASE("every point has a row, failed ones with their reason") {
  const Report report = telling_report();
  const std::string page = page_of(report);
  CHECK(count_of(page, "<tbody>") == report.points.size());
  CHECK_THAT(page, Catch::Contains("FAILED: oom, asked for 20 MiB"));
}

TEST_CASE("a page of nothing says so") {
  CHECK_THAT(render_page({{"empty.json", Report{}}}), Catch::Contains("The report has no points."));
}

TEST_CASE("a page of 500 points stays under 2 MB and shows them all") {
  const std::string page = page_of(large_report(500));
  CHECK(page.size() < 2'000'000);
  CHECK(count_of(page, "<tbody>") == 500);
  CHECK_THAT(page, Catch::Contains("Shown: 40 of 500 points"));
}

TEST_CASE("a page shows 100 points of many, by their own numbers, and every one that was run") {
  FrontRecord record = testing::predicted_front();
  Front& front = record.front;
  front.points.clear();
  for (int index = 0; index < 1000; ++index) {
    FrontPoint point = front.nothing_recomputed;
    point.figures.peak = Bytes{(1000 + index) << 10};
    point.step_time = std::chrono::microseconds(3'000'000 / (index + 10));
    front.points.push_back(point);
  }
  front.knee = 501;
  front.points[503].measured.emplace();
  front.points[503].measured->status = "oom";
  front.points[503].measured->reason = "asked for 1 GiB";
  const std::string page = render_page({}, {}, {{"front.json", record}});
  CHECK(page.size() < 500'000);
  for (const char* name : {"0", "501", "503", "999"}) {
    CHECK_THAT(page, Catch::Contains("data-name=\"point\">" + std::string(name) + "</td>"));
  }
  CHECK_THAT(page, Catch::Contains("of 1000 points, by the area that they add"));
}

TEST_CASE("CSV quotes what it must, and defuses formulas") {
  Report report{testing::sample_provenance(), {testing::sample_oom("a,\"b\"")}, {}};
  report.points[0].reason = "=cmd()\nnext";
  const std::string csv = render_csv({{"r.json", report}});
  CHECK_THAT(csv, Catch::Contains(",\"a,\"\"b\"\"\",") && Catch::Contains(",\"'=cmd()\nnext\","));
}

TEST_CASE("a CSV line has as many cells as the header") {
  std::istringstream lines(render_csv({{"r.json", large_report(5)}}));
  std::string header;
  std::getline(lines, header);
  const auto cells = [](const std::string& line) {
    std::size_t count = 1;
    bool quoted = false;
    for (const char letter : line) {
      if (letter == '"') quoted = !quoted;
      if (letter == ',' && !quoted) ++count;
    }
    return count;
  };
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) CHECK(cells(line) == cells(header));
  CHECK(rows == 5);
}

}  // namespace rematch
