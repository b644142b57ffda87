#include "reports/render/pages/page.h"

#include <cctype>
#include <regex>
#include <set>
#include <sstream>

#include "policies/base/format.h"
#include "reports/render/charts/chart.h"
#include "reports/render/pages/elements.h"
#include "reports/render/tables/csv.h"
#include "reports/render/tables/report_table.h"
#include "tests/reports/render/sample_comparisons.h"
#include "tests/reports/render/sample_front.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace rematch {
namespace {

using testing::large_report;
using testing::representative_report;

std::string page_of(const Report& report) { return render_page({{"sample.json", report}}); }

// Returns the tags of unbalanced elements, or "" if all elements are balanced.
std::string unbalanced(const std::string& page) {
  static const std::regex kTag("<(/?)([a-zA-Z0-9]+)[^>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator tag(page.begin(), page.end(), kTag), end; tag != end; ++tag) {
    const std::string name = (*tag)[2];
    if (!(*tag)[3].str().empty() || name == "meta" || name == "link" || name == "wbr") continue;
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

TEST_CASE("the page of a representative report is well formed") {
  const std::string page = page_of(representative_report());
  testing::keep_page("report.html", page);
  CHECK(unbalanced(page) == "");
}

TEST_CASE("the page of a measured front and a predicted front is well formed") {
  const std::string page = render_page(
      {}, {},
      {{"front.json", testing::representative_front()}, {"p.json", testing::predicted_front()}});
  testing::keep_page("fronts.html", page);
  CHECK(unbalanced(page) == "");
  CHECK(count_of(page, "<script") == 1);  // no script except the page's own
  CHECK_THAT(page, Catch::Contains("&lt;script&gt;"));
}

TEST_CASE("a chart is written to a file", "[golden]") {
  const Report report = representative_report();
  const auto picture =
      chart::draw_chart("front", compare_policies(report).front(), report.provenance.environment);
  testing::check_golden("render/front.svg", to_svg_file(std::get<chart::Picture>(picture)));
}

TEST_CASE("the CSV of a representative report equals the approved file", "[golden]") {
  const std::vector<NamedReport> reports = {{"sample.json", representative_report()}};
  testing::check_golden("render/points.csv", render_csv(reports));
}

TEST_CASE("names that contain markup are escaped everywhere") {
  const Report report = representative_report();
  const std::string page = page_of(report);
  CHECK(count_of(page, "<script") == 1);
  CHECK_THAT(page,
             !Catch::Contains("<img") && !Catch::Contains("<b>none") && !Catch::Contains("<aten"));
  CHECK_THAT(page, Catch::Contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"));
  CHECK(unbalanced(page) == "");
  // File names and all members of an environment are untrusted text too.
  Report hostile = report;
  hostile.provenance.environment.cpu_model = "<svg/onload=alert(1)>";
  hostile.points[0].identity.model = "</title><script>";
  const std::string other = render_page({{"\"><script>.json", hostile}});
  CHECK(count_of(other, "<script") == 1);
  CHECK_THAT(other, !Catch::Contains("<svg/onload"));
  CHECK(unbalanced(other) == "");
}

TEST_CASE("the page loads nothing and runs only its own script") {
  const std::string page = page_of(representative_report());
  CHECK_THAT(page, !Catch::Contains("http:") && !Catch::Contains("https:") &&
                       !Catch::Contains("src=\"") && !Catch::Contains("url(") &&
                       !Catch::Contains("@import") && !Catch::Contains(" onload"));
  CHECK_THAT(page, Catch::Contains("default-src 'none'") &&
                       Catch::Contains("script-src 'sha256-") && !Catch::Contains("onclick"));
}

TEST_CASE("every point has a row, and failed points have their reason") {
  const Report report = representative_report();
  const std::string page = page_of(report);
  CHECK(count_of(page, "<tbody id=\"s0-") == report.points.size());
  CHECK_THAT(page, Catch::Contains("FAILED: oom, asked for 20 MiB"));
}

std::vector<std::string> between(const std::string& text, const std::string& before,
                                 const std::string& after) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
    at += before.size();
    found.push_back(text.substr(at, text.find(after, at) - at));
  }
  return found;
}

TEST_CASE("files on one page have distinct names, which include folders if necessary") {
  const Report report{testing::sample_provenance(), {testing::sample_point("none")}, {}};
  CompareRecord compared;
  compared.base.file = compared.candidate.file = "a.json";
  const std::vector<NamedCompare> compares = {{"runs/c.json", compared}};
  const std::string page = render_page(
      {{"runs/old/a.json", report}, {"runs/new/a.json", report}, {"/b.json", report}}, compares);
  const std::string model = "wan_small on cpu: ";
  CHECK(between(page, "<h2>", "</h2>") ==
        std::vector<std::string>{"Compared: c.json", "wan_small on cpu, reports together",
                                 model + "old/a.json", model + "new/a.json", model + "b.json"});
  // The table of contents has a row for each section, and a row for the machines.
  std::vector<std::string> anchors = between(page, "<section id=\"", "\"");
  anchors.emplace_back("made");
  const std::string contents = page.substr(0, page.find("</nav>"));
  CHECK(between(contents, "<td class=\"name\"><a href=\"#", "\"") == anchors);
  CHECK(count_of(page, "<section id=") == 5);
  CHECK_THAT(page, !Catch::Contains("runs/"));
  // If the page shows only one file, the heading does not contain the file's name.
  CHECK(between(page_of(report), "<h2>", "</h2>").front() == "wan_small on cpu");
}

TEST_CASE("every link of a page has a target, and every figure has a link") {
  const std::string page = render_page({{"a.json", representative_report()}}, {},
                                       {{"front.json", testing::representative_front()}});
  const std::vector<std::string> anchors = between(page, " id=\"", "\"");
  const std::set<std::string> distinct(anchors.begin(), anchors.end());
  CHECK(distinct.size() == anchors.size());
  const std::vector<std::string> links = between(page, "<a href=\"#", "\"");
  CHECK((std::set<std::string>(links.begin(), links.end()) == distinct));
}

TEST_CASE("a page shows short main tables, and folds long tables and everything else") {
  const std::string page = page_of(representative_report());
  const auto is_folded = [](const std::string& text, const std::string& title) {
    return text.find("<summary><h3>" + title + "</h3>") != std::string::npos;
  };
  for (const char* title : {"Every policy", "Executed attention forward ops"}) {
    CAPTURE(title);
    CHECK_FALSE(is_folded(page, title));
    CHECK(is_folded(page_of(large_report(21)), title));
  }
  CHECK(is_folded(page, "Loss"));
  CHECK(is_folded(page, "Executed matmul ops"));
}

TEST_CASE("the title of a page says which question the page answers") {
  CHECK(between(page_of(representative_report()), "<h1>", "</h1>").front() ==
        "Which activations to keep");
  const std::string compared = render_page({}, {{"c.json", CompareRecord{}}});
  CHECK(between(compared, "<h1>", "</h1>").front() == "What differs between reports");
  CHECK(between(compared, "<title>", "</title>").front() ==
        "Activation checkpointing: Compared: c.json");
}

TEST_CASE("a page of an empty report says that it has no points") {
  CHECK_THAT(render_page({{"empty.json", Report{}}}), Catch::Contains("The report has no points."));
}

TEST_CASE("a page of 500 points stays under 2 MB and shows all points") {
  const std::string page = page_of(large_report(500));
  CHECK(page.size() < 2'000'000);
  CHECK(count_of(page, "<tbody id=\"s0-") == 500);
  CHECK_THAT(page, Catch::Contains("Shown: 40 of 500 points"));
}

TEST_CASE(
    "a page shows at most 100 points of a front with their numbers, and all measured points") {
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
    const std::string anchor = "f0-p" + std::string(name);
    CHECK_THAT(page, Catch::Contains("<tbody id=\"" + anchor + "\">") &&
                         Catch::Contains("<a href=\"#" + anchor + "\">" + name + "</a>"));
  }
  CHECK_THAT(page, Catch::Contains("of 1000 points, chosen by the area that they add"));
}

TEST_CASE(
    "the page of a front has its simple plan, its commands, and complete plans in folded "
    "sections") {
  FrontRecord record = testing::predicted_front();
  record.simple = SimplePoint{record.front.points[4], Bytes{8 << 20}, {}};
  record.simple->point.saves = "layers 0-7: keep attention.core::attention" + std::string(30, ',') +
                               " and the last word of a long plan";
  record.git_commit = "0123456789ab";
  record.date = "2026-11-28";
  record.reproduce = "scripts/rematch search --model wan_small --device cpu";
  const std::string page = render_page({}, {}, {{"front.json", record}});
  CHECK(unbalanced(page) == "");
  CHECK_THAT(page, Catch::Contains("<tbody id=\"f0-simple\">") &&
                       Catch::Contains("and the last word of a long plan.</span></details>"));
  CHECK_THAT(page, Catch::Contains("Searched on 2026-11-28 by commit 0123456789ab") &&
                       Catch::Contains("<pre>" + record.reproduce + "</pre>") &&
                       Catch::Contains("rematch describe --plan front.json#"));
}

TEST_CASE("reports of the same comparison share a chart, with a colour for each report") {
  const Report report = representative_report();
  const std::string page = render_page({{"before.json", report}, {"after.json", report}});
  CHECK(unbalanced(page) == "");
  const std::size_t start = page.find("<section id=\"o0\">");
  REQUIRE(start != std::string::npos);
  const std::string part = page.substr(start, page.find("</section>", start) - start);
  CHECK_THAT(part, Catch::Contains("before.json") && Catch::Contains("after.json") &&
                       Catch::Contains("<svg"));
  CHECK(count_of(page_of(report), "<section id=\"o") == 0);
}

TEST_CASE("CSV cells are quoted where necessary, and cannot act as formulas") {
  Report report{testing::sample_provenance(), {testing::sample_oom("a,\"b\"")}, {}};
  report.points[0].reason = "=cmd()\nnext";
  const std::vector<NamedReport> reports = {{"r.json", report}};
  const std::string csv = render_csv(reports);
  CHECK_THAT(csv, Catch::Contains(",\"a,\"\"b\"\"\",") && Catch::Contains(",\"'=cmd()\nnext\","));
}

// Checks that all lines have as many cells as the header. Returns the number of lines after the
// header.
int num_csv_rows(const std::string& csv) {
  std::istringstream lines(csv);
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
  return rows;
}

TEST_CASE("a CSV line has as many cells as the header") {
  const std::vector<NamedReport> reports = {{"r.json", large_report(5)}};
  CHECK(num_csv_rows(render_csv(reports)) == 5);
}

TEST_CASE("headings, tiles and verdicts are capitalized, and intervals have a plus-minus sign") {
  Report report = testing::representative_report();
  report.points.back().reason = "the median is only known to +- 12 %";
  report.points.back().status = PointStatus::kInvalid;
  const std::string page =
      render_page({{"r.json", report}}, {}, {{"f.json", testing::representative_front()}});
  CHECK_THAT(page, Catch::Contains("only known to &plusmn;12&nbsp;%") &&
                       Catch::Contains(">&plusmn;1.0&nbsp;%<"));
  for (const std::string before : {"<th>", "<th class=\"right\">", "<div class=\"tile\"><span>",
                                   "<p class=\"verdict\">", "<summary><h3>", "<dt>"}) {
    for (std::size_t at = page.find(before); at != std::string::npos;
         at = page.find(before, at + 1)) {
      const char first = page.at(at + before.size());
      CAPTURE(page.substr(at, 60));
      CHECK_FALSE(std::islower(static_cast<unsigned char>(first)));
    }
  }
}

// Hypervolume is for experts, so it appears only in the folded section of baselines.
TEST_CASE("no tile and no title on a front's page mentions hypervolume") {
  const std::string page = render_page({}, {}, {{"f.json", testing::representative_front()}});
  for (const char* before : {"<h3>", "<div class=\"tile\"><span>"}) {
    for (const std::string& title : between(page, before, "<")) {
      CHECK_THAT(title, !Catch::Contains("ypervolume"));
    }
  }
  CHECK_THAT(page, Catch::Contains("<span>Fastest plan that fits</span>"));
  const std::size_t baselines = page.find("<summary><h3>Baselines</h3>");
  REQUIRE(baselines != std::string::npos);
  CHECK(page.find("Hypervolume 0.25") > baselines);
}

TEST_CASE("the tile of a front shows the answer to the user's limit, not the device's") {
  FrontRecord record = testing::predicted_front();
  record.budget = record.front.points[1].figures.peak;
  record.answer = record.front.points[1];
  const auto page = [&record] { return render_page({}, {}, {{"f.json", record}}); };
  CHECK_THAT(page(),
             Catch::Contains("<span>Fastest plan that fits</span><b>" +
                             page::prose(format_bytes(*record.budget)) + "</b><span>Point 1, "));
  record.answer.reset();
  CHECK_THAT(page(), Catch::Contains("<b>none</b><span>No point fits the budget</span>"));
  record.budget.reset();
  record.answer = record.front.points[1];
  record.max_slowdown_ratio = 0.05;
  CHECK_THAT(page(), Catch::Contains("<span>Lowest peak for 5.0 % more step time</span>"));
}

// One point has the dimension `batch`, the other `experts`. Each dimension has a column, which is
// empty for points without this dimension.
TEST_CASE("the CSV of a report has columns for every dimension, every setting and the commit") {
  Report report{testing::sample_provenance(), {}, {}};
  for (const char* policy : {"none", "full"}) {
    PointRecord point = testing::sample_point(policy);
    point.identity.dimensions = {{"batch", 2}, {"tokens", 128}};
    report.points.push_back(point);
  }
  report.points[1].identity.dimensions = {{"experts", 6}, {"tokens", 64}};
  report.points[1].identity.ops = "fused";
  report.points[1].identity.world = 8;
  const std::string csv = render_csv(std::vector<NamedReport>{{"r.json", report}});
  CHECK_THAT(csv,
             Catch::StartsWith("report,git_commit,git_dirty,model,device,policy,schedule,batch,"
                               "experts,tokens,dtype,ops,attention_backend,optimizer,data,"
                               "seed,threads,world,status,"));
  CHECK_THAT(csv,
             Catch::Contains(",none,on_demand,2,,128,float32,eager,flash,adamw,builtin,1,2,1,"));
  CHECK_THAT(csv,
             Catch::Contains(",full,on_demand,,6,64,float32,fused,flash,adamw,builtin,1,2,8,"));
  CHECK_THAT(csv, Catch::Contains("\nr.json,0123456,false,wan_small,cpu,none,"));
  CHECK(num_csv_rows(csv) == 2);
}

TEST_CASE(
    "the CSV of a searched front has a line for each point and baseline, with predicted and "
    "measured figures") {
  std::vector<NamedFront> fronts = {{"f.json", testing::representative_front()}};
  fronts[0].record.ops = "fused";
  fronts[0].record.git_commit = "0123abc";
  fronts[0].record.git_dirty = false;
  const std::string csv = render_csv(fronts);
  const Front& front = fronts[0].record.front;
  CHECK(num_csv_rows(csv) == static_cast<int>(front.points.size() + front.baselines.size()));
  CHECK_THAT(
      csv,
      Catch::StartsWith(
          "front,git_commit,git_dirty,model,device,schedule,batch,dim,layers,dtype,ops,world,"));
  CHECK_THAT(
      csv,
      Catch::Contains("\nf.json,0123abc,false,wan_small,cpu,on_demand,1,256,4,float32,fused,1,") &&
          Catch::Contains(",point,0,62914560,") && Catch::Contains(",baseline,full,62914560,") &&
          Catch::Contains(",timeout,no result after 10 min,"));
}

// A comparison with one row of two metrics, and one point that is in only one of the reports.
CompareRecord two_metrics_and_an_extra() {
  CompareRecord record;
  record.base.file = "a.json";
  record.base.git_commit = "0123456";
  record.candidate.file = "b,c.json";
  ComparedRow row;
  row.model = "wan_small";
  row.dimensions = {{"dim", 64}, {"layers", 3}};
  row.policy = "full";
  row.device = "cpu";
  row.dtype = "float32";
  row.ops = "fused";
  row.threads = 2;
  row.world = 8;
  MetricRecord peak{Metric::kPeakAllocated, 100, 100, 1.0, {}, {}, CompareVerdict::kSame, ""};
  MetricRecord loss{Metric::kLoss, 2, 3, 1.5, {}, {}, CompareVerdict::kHigher, "from step 1"};
  row.metrics = {peak, loss};
  record.rows.push_back(row);
  record.floors = {{Metric::kPeakAllocated, 0, 0}, {Metric::kLoss, 0, 0}};
  UncomparedPoint extra;
  extra.model = "wan_small";
  extra.policy = "none";
  extra.candidate_status = PointStatus::kOk;
  extra.identity_differences = {{"seed", "0", "1"}};
  record.extra.push_back(extra);
  return record;
}

TEST_CASE(
    "the CSV of a compare record has a line for each row and metric, and for each uncompared "
    "point") {
  const std::vector<NamedCompare> compares = {{"c.json", two_metrics_and_an_extra()}};
  const std::string csv = render_csv(compares);
  CHECK(num_csv_rows(csv) == 3);
  CHECK_THAT(
      csv,
      Catch::StartsWith(
          "comparison,base_report,candidate_report,base_git_commit,"
          "candidate_git_commit,model,device,dim,layers,dtype,ops,threads,world,policy,") &&
          Catch::Contains(
              "c.json,a.json,\"b,c.json\",0123456,,wan_small,cpu,64,3,float32,fused,2,8,full,") &&
          Catch::Contains(",loss,2.0,3.0,1.5,,,,higher,from step 1") &&
          Catch::Contains(",extra,\"seed 0 in the base, 1 in the candidate\""));
}

TEST_CASE("the page of a comparison has charts of differences, and lists everything else") {
  const std::string page = render_page({}, {{"c.json", two_metrics_and_an_extra()}});
  CHECK_THAT(page, Catch::Contains("The same in every row: peak allocated.") &&
                       !Catch::Contains("<h3>Peak allocated, candidate over base") &&
                       Catch::Contains("<h3>Loss, candidate over base") &&
                       Catch::Contains("<th class=\"right\">Peak allocated</th>") &&
                       Catch::Contains("<td class=\"right\">same</td>") &&
                       Catch::Contains("candidate ok): seed 0 in the base, 1 in the candidate"));
  CHECK(unbalanced(page) == "");
}

}  // namespace rematch
