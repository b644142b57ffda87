#include "reports/render/charts/svg.h"

#include <cmath>
#include <limits>

#include "reports/render/markup.h"
#include "tests/support/catch.h"

namespace rematch::chart {

TEST_CASE("markup in text is escaped") {
  CHECK(escape_markup("<b a=\"1\" c='2'>&amp;") ==
        "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  CHECK(escape_markup("\u00e9\n\u2026") == "\u00e9\n\u2026");
}

TEST_CASE("characters that markup forbids become the replacement character") {
  const std::string replaced =
      "a\xEF\xBF\xBD"
      "b";
  CHECK(escape_markup(std::string("a\0b", 3)) == replaced);
  CHECK(escape_markup("a\x1b"
                      "b") == replaced);
  CHECK(escape_markup("a\xff"
                      "b") == replaced);  // a byte that UTF-8 never contains
  CHECK(escape_markup("a\xc3"
                      // an incomplete UTF-8 character
                      "b") == replaced);
  CHECK(escape_markup("a\xc0\xaf") == "a\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
}

TEST_CASE("a coordinate that is not finite is rejected") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Picture picture{"", 10, 10};
    picture.add_line({0, 0}, {bad, 0}, Paint::kInk);
    CHECK_THROWS_AS(to_svg(picture), std::logic_error);
  }
}

TEST_CASE("shapes are written with their tooltips and with short numbers") {
  Picture picture{"a & b", 100, 50};
  picture.add(Rectangle{{1, 2.04, 11, 12}, Paint::kBlue, "x < y"});
  const std::string svg = to_svg(picture);
  CHECK_THAT(svg, Catch::Contains("viewBox=\"0 0 100 50\"") &&
                      Catch::Contains("<title>a &amp; b</title>") &&
                      Catch::Contains("<rect x=\"1\" y=\"2\" width=\"10\" height=\"10\" "
                                      "class=\"f6\"><title>x &lt; y</title></rect>"));
}

TEST_CASE("a chart file has its legend above the picture, with a line for each key") {
  Picture picture{"", 300, 50};
  picture.legend = {{"first", MarkerKind::kSquare, Paint::kBlue}, {"second"}};
  CHECK_THAT(to_svg_file(picture), Catch::Contains("viewBox=\"-16 -56 332 122\""));
  picture.legend.push_back(
      {std::string(200, 'w'), MarkerKind::kCircle, Paint::kClear, Paint::kClear, "a"});
  const std::string svg = to_svg_file(picture);
  CHECK_THAT(svg, Catch::Contains("viewBox=\"-16 -76 332 142\"") &&
                      Catch::Contains("font-weight=\"600\">a</text>") &&
                      Catch::Contains("www...</text>"));
}

TEST_CASE("strokes, bars and markers must not overlap text, but areas and grid lines may") {
  CHECK(covered_by(Rectangle{{0, 0, 4, 4}, Paint::kBlue, ""}).size() == 1);
  CHECK(covered_by(Marker{}).size() == 1);
  CHECK(covered_by(Path{{{0, 0}, {90, 0}}}).size() == 1);
  // A slanted line is covered by several small boxes, because its bounding box is mostly empty.
  CHECK(covered_by(Path{{{0, 0}, {90, 60}}}).size() == 11);
  CHECK(covered_by(Path{{{0, 0}, {90, 0}}, Paint::kGrid}).empty());
  CHECK(covered_by(Path{{{0, 0}, {9, 0}, {9, 9}}, Paint::kClear, Paint::kBlue}).empty());
  CHECK(covered_by(Label{{0, 0}, "word"}).empty());
}

TEST_CASE("text that is too wide is cut with an ellipsis and then fits") {
  CHECK(fit_text("short", 100) == "short");
  for (const double width : {20.0, 40.0, 80.0}) {
    const std::string cut = fit_text("a_policy_with_a_very_long_name", width);
    CHECK(text_width(cut) <= width);
    CHECK_THAT(cut, Catch::EndsWith("..."));
  }
  // A character of several bytes is kept whole.
  CHECK(fit_text("\u00e9\u00e9\u00e9\u00e9", 36) == "\u00e9\u00e9...");
}

}  // namespace rematch::chart
