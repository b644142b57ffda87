#include "reports/render/pages/elements.h"

#include "tests/support/catch.h"

namespace rematch::page {

TEST_CASE("adjacent narrow figures are placed in columns, with folded figures last") {
  const auto narrow = [](const char* title, Fold fold) {
    return Figure{title, "", "", fold, FigureWidth::kColumn};
  };
  const Part shown{
      {},
      "",
      "",
      {{"a", "why", "<svg>"}, narrow("b", Fold::kFolded), narrow("c", Fold::kOpen), {"d", "", ""}}};
  CHECK_THAT(part(shown, "s1"),
             Catch::EndsWith(
                 "<figure id=\"s1-0\"><h3>a</h3>\n<p>why</p>\n<svg></figure>\n"
                 "<div class=\"columns\">\n<figure id=\"s1-2\"><h3>c</h3>\n</figure>\n</div>\n"
                 "<div class=\"columns\">\n<figure class=\"folded\" id=\"s1-1\"><details><summary>"
                 "<h3>b</h3></summary>\n<div class=\"inside\"></div></details></figure>\n</div>\n"
                 "<figure id=\"s1-3\"><h3>d</h3>\n</figure>\n"));
}

// Seven rows make columns of 3, 3 and 1 rows. The longest row has 4 layers, so each axis ends at 4.
TEST_CASE("a chart without neighbours spreads its rows over three columns with one scale") {
  chart::Rows chart{"Kept", "Words.", "Layers"};
  chart.legend = {{"Recompute all", chart::MarkerKind::kSquare, chart::Paint::kGrey}};
  for (int row = 0; row < 7; ++row) {
    const double value = row == 0 ? 4 : 1;
    chart.rows.push_back(
        {"p" + std::to_string(row), "", "", "", false, {{value, chart::Paint::kGrey, ""}}, {}});
  }
  const Figure figure = spread_figure(chart, Fold::kOpen, " More.");
  CHECK(figure.width == FigureWidth::kWhole);
  CHECK(figure.words == "Words. More.");
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = figure.content.find(part); at != std::string::npos;
         at = figure.content.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  CHECK(count("class=\"legend\"") == 1);
  CHECK(count(">4</text>") == 3);
  for (const char* columns : {"Kept, p0 to p2", "Kept, p3 to p5", "Kept, p6 to p6"}) {
    CHECK(count(columns) > 0);
  }
}

TEST_CASE("links to figures are in the order of the figures, and their texts are escaped") {
  const Part shown{{}, "", "", {{"a", "", ""}, {"<b>", "", ""}}};
  CHECK_THAT(part(shown, "s1"),
             Catch::StartsWith("<p class=\"links\"><a href=\"#s1-0\">a</a>\n<a href=\"#s1-1\">"
                               "&lt;b&gt;</a>\n</p>\n"));
  CHECK(part({}, "s1") == "");
}

// A phone shows two lines of the text until the reader unfolds it.
TEST_CASE("the text of a row is folded if it is longer than a hundred letters") {
  const auto table_of = [](std::size_t num_letters) {
    return grid({{{"name"}}, "", {{{"row"}, std::string(num_letters, 'w'), true}}});
  };
  const std::string words = "<span class=\"bad\">W" + std::string(100, 'w') + "</span>";
  CHECK_THAT(table_of(101), Catch::Contains("<details class=\"words\"><summary>" + words));
  CHECK_THAT(table_of(100), !Catch::Contains("<details"));
}

TEST_CASE("names are wrapped only after punctuation, and a spread has a plus-minus sign") {
  const std::string name = "a_policy(first=1,second)";
  const std::string text = grid(
      {{{"name"}, {"known to"}}, "", {{{name, "+- 1.0 %"}, ""}, {{name + "_and_more", "1"}, ""}}});
  CHECK_THAT(text, Catch::Contains(">" + name + "</td>") &&
                       Catch::Contains(">a_policy(<wbr>first=<wbr>1,<wbr>second)_and_more</td>") &&
                       Catch::Contains(">&plusmn;1.0&nbsp;%</td>") &&
                       Catch::Contains(">Known to</th>"));
}

// A cell without a value has no title.
TEST_CASE("a table that wraps on a phone repeats its column titles beside the values") {
  const table::Grid table{
      {{"contents"}, {"lowest <peak>"}, {"knee"}}, "", {{{"a", "1 B", "-"}, ""}}};
  const std::string wraps = grid(table, CellTitles::kBesideOnNarrow);
  CHECK_THAT(wraps, Catch::Contains("class=\"scroll wraps\"") &&
                        Catch::Contains("data-title=\"Lowest &lt;peak&gt;\">1&nbsp;B</td>") &&
                        Catch::Contains("<td class=\"right\">-</td>"));
  CHECK_THAT(grid(table), !Catch::Contains("data-title") && !Catch::Contains("wraps"));
}

TEST_CASE("a number and its unit stay on one line") {
  CHECK(prose("a peak of 20 MiB, 32 % lower (105 ms)") ==
        "a peak of 20&nbsp;MiB, 32&nbsp;% lower (105&nbsp;ms)");
  CHECK_THAT(part({{{"peak", "68.0 MiB", "-32 %"}}, "", "", {}}, "s1"),
             Catch::Contains("<b>68.0&nbsp;MiB</b><span>-32&nbsp;%</span>"));
}

TEST_CASE("a picture is placed below its legend, whose symbols are text") {
  chart::Picture drawn{"t", 10, 10};
  drawn.legend = {{"why", chart::MarkerKind::kSquare, chart::Paint::kBlue},
                  {"<x>", chart::MarkerKind::kCircle, {}, {}, "a"}};
  CHECK_THAT(picture(drawn),
             Catch::StartsWith("<p class=\"legend\"><span><svg viewBox=\"0 0 12 12\"><rect ") &&
                 Catch::Contains("</svg>why</span>\n<span><b>a</b>&lt;x&gt;</span>\n</p>\n<svg"));
}

}  // namespace rematch::page
