#include "reports/render/page_figure.h"

#include "reports/render/markup.h"

namespace rematch {
namespace {

// Narrow screens have no mouse to rest on a shape.
Picture without_hints(Picture picture) {
  for (Shape& shape : picture.shapes) {
    std::visit([](auto& any) { any.hint.clear(); }, shape);
  }
  return picture;
}

std::string with_class(std::string svg, const char* name) {
  constexpr std::size_t kAfterName = 4;  // "<svg"
  return svg.insert(kAfterName, std::string(" class=\"") + name + "\"");
}

}  // namespace

std::string page_figure(const std::string& title, const std::string& words,
                        const std::string& content) {
  return "<figure><h3>" + escape_markup(title) + "</h3>\n<p>" + escape_markup(words) + "</p>\n" +
         content + "</figure>\n";
}

std::string for_both_widths(const std::function<Picture(double)>& draw, double wide) {
  return with_class(to_svg(draw(wide)), "wide") +
         with_class(to_svg(without_hints(draw(kPhoneWidth))), "narrow");
}

std::string words_left_out(std::size_t drawn, std::size_t all, const std::string& order) {
  if (drawn >= all) return "";
  return " Shown: " + std::to_string(drawn) + " of " + std::to_string(all) + " points, " + order +
         ".";
}

}  // namespace rematch
