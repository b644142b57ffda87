#include "reports/render/svg.h"

#include <cmath>
#include <limits>

#include "reports/render/markup.h"
#include "reports/render/text_width.h"
#include "tests/support/catch.h"

namespace rematch {

TEST_CASE("markup in text is text") {
  CHECK(escape_markup("<b a=\"1\" c='2'>&amp;") ==
        "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  CHECK(escape_markup("\u00e9\n\u2026") == "\u00e9\n\u2026");
}

TEST_CASE("what markup cannot hold becomes the replacement character") {
  const std::string replaced =
      "a\xEF\xBF\xBD"
      "b";
  CHECK(escape_markup(std::string("a\0b", 3)) == replaced);
  CHECK(escape_markup("a\x1b"
                      "b") == replaced);
  CHECK(escape_markup("a\xff"
                      "b") == replaced);  // no UTF-8
  CHECK(escape_markup("a\xc3"
                      "b") == replaced);                             // cut short
  CHECK(escape_markup("a\xc0\xaf") == "a\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
}

TEST_CASE("a coordinate that is not finite is refused") {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Picture picture{"", 10, 10, {}};
    picture.add(Line{{0, 0}, {bad, 0}});
    CHECK_THROWS_AS(to_svg(picture), std::logic_error);
  }
}

TEST_CASE("shapes are written with their hints, numbers short") {
  Picture picture{"a & b", 100, 50, {}};
  picture.add(Rectangle{{1, 2.04, 11, 12}, Paint::kBlue, "x < y"});
  const std::string svg = to_svg(picture);
  CHECK_THAT(svg, Catch::Contains("viewBox=\"0 0 100 50\"") &&
                      Catch::Contains("<title>a &amp; b</title>") &&
                      Catch::Contains("<rect x=\"1\" y=\"2\" width=\"10\" height=\"10\" "
                                      "class=\"f6\"><title>x &lt; y</title></rect>"));
}

TEST_CASE("a picture in another is moved, not changed") {
  Picture part{"", 10, 10, {}};
  part.add(Label{{1, 2}, "word"});
  part.add(Path{{{0, 0}, {4, 5}}, Paint::kClear, Paint::kInk});
  Picture whole{"", 100, 100, {}};
  insert(whole, part, {30, 40});
  CHECK(std::get<Label>(whole.shapes[0]).baseline == Position{31, 42});
  CHECK(std::get<Path>(whole.shapes[1]).corners[1] == Position{34, 45});
}

TEST_CASE("text that is too wide ends in an ellipsis and then fits") {
  CHECK(fit_text("short", 12, 100) == "short");
  for (const double width : {20.0, 40.0, 80.0}) {
    const std::string cut = fit_text("a_policy_with_a_very_long_name", 12, width);
    CHECK(text_width(cut, 12) <= width);
    CHECK_THAT(cut, Catch::EndsWith("..."));
  }
  // Characters of several bytes are not cut in two.
  CHECK(fit_text("\u00e9\u00e9\u00e9\u00e9", 10, 30) == "\u00e9\u00e9...");
}

}  // namespace rematch
