#include "reports/render/page_figure.h"

#include "reports/render/markup.h"

namespace rematch {
namespace {

constexpr std::size_t kMostOpenRows = 20;

std::string anchor_of(const std::string& part_anchor, std::size_t index) {
  return part_anchor + "-" + std::to_string(index);
}

std::string figure_markup(const PageFigure& figure, const std::string& anchor) {
  const std::string title = "<h3>" + escape_markup(figure.title) + "</h3>";
  const std::string inside =
      (figure.words.empty() ? "" : "<p>" + escape_markup(figure.words) + "</p>\n") + figure.content;
  const std::string start = " id=\"" + anchor + "\">";
  if (figure.fold == Fold::kOpen) return "<figure" + start + title + "\n" + inside + "</figure>\n";
  return "<figure class=\"folded\"" + start + "<details><summary>" + title +
         "</summary>\n<div class=\"inside\">" + inside + "</div></details></figure>\n";
}

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

Fold fold_of(std::size_t num_rows) {
  return num_rows > kMostOpenRows ? Fold::kFolded : Fold::kOpen;
}

std::string figures_markup(const std::string& part_anchor, const std::vector<PageFigure>& figures) {
  std::string text;
  const auto is_half = [&](std::size_t index) {
    return index < figures.size() && figures[index].width == FigureWidth::kHalf;
  };
  for (std::size_t index = 0; index < figures.size();) {
    if (!is_half(index)) {
      text += figure_markup(figures[index], anchor_of(part_anchor, index));
      ++index;
      continue;
    }
    std::string open;
    std::string folded;
    for (; is_half(index); ++index) {
      std::string& group = figures[index].fold == Fold::kOpen ? open : folded;
      group += figure_markup(figures[index], anchor_of(part_anchor, index));
    }
    text += "<div class=\"pair\">\n" + open + folded + "</div>\n";
  }
  return text;
}

std::string figure_links(const std::string& part_anchor, const std::vector<PageFigure>& figures) {
  std::string text;
  for (std::size_t index = 0; index < figures.size(); ++index) {
    text += "<a href=\"#" + anchor_of(part_anchor, index) + "\">" +
            escape_markup(figures[index].title) + "</a>\n";
  }
  return text.empty() ? "" : "<p class=\"links\">" + text + "</p>\n";
}

std::string page_tile(const std::string& name, const std::string& value, const std::string& more) {
  return "<div class=\"tile\"><span>" + escape_markup(name) + "</span><b>" + escape_markup(value) +
         "</b><span>" + escape_markup(more) + "</span></div>\n";
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
