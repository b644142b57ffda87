#include "reports/render/page_figure.h"

#include "reports/render/page_grid.h"
#include "tests/support/catch.h"

namespace rematch {

TEST_CASE("halves that follow each other stand in one pair, the folded ones last") {
  const auto half = [](const char* title, Fold fold) {
    return PageFigure{title, "", "", fold, FigureWidth::kHalf};
  };
  CHECK(figures_markup("s1", {{"a", "why", "<svg>"},
                              half("b", Fold::kFolded),
                              half("c", Fold::kOpen),
                              {"d", "", ""}}) ==
        "<figure id=\"s1-0\"><h3>a</h3>\n<p>why</p>\n<svg></figure>\n"
        "<div class=\"pair\">\n<figure id=\"s1-2\"><h3>c</h3>\n</figure>\n"
        "<figure class=\"folded\" id=\"s1-1\"><details><summary><h3>b</h3></summary>\n"
        "<div class=\"inside\"></div></details></figure>\n</div>\n"
        "<figure id=\"s1-3\"><h3>d</h3>\n</figure>\n");
}

TEST_CASE("figures are linked in their order, by names that mean nothing in markup") {
  CHECK(figure_links("s1", {{"a", "", ""}, {"<b>", "", ""}}) ==
        "<p class=\"links\"><a href=\"#s1-0\">a</a>\n<a href=\"#s1-1\">&lt;b&gt;</a>\n</p>\n");
  CHECK(figure_links("s1", {}) == "");
}

// Cut after two lines of a telephone, all of it in the page.
TEST_CASE("a row's words fold from a hundred letters on") {
  const auto grid_of = [](std::size_t num_letters) {
    return page_grid({{{"name"}}, "", {{{"row"}, std::string(num_letters, 'w')}}},
                     [](std::size_t) { return true; });
  };
  const std::string words = "<span class=\"bad\">" + std::string(101, 'w') + "</span>";
  CHECK_THAT(grid_of(101), Catch::Contains("<details class=\"words\"><summary>" + words));
  CHECK_THAT(grid_of(100), !Catch::Contains("<details"));
}

}  // namespace rematch
