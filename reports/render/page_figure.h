// Figures of a page: a title, a sentence, and pictures laid out for wide and for narrow screens.
// What a reader can do without at first is folded under its title.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/render/svg.h"

namespace rematch {

// Widths that pictures are laid out for: the page's whole width, half of it, and a telephone's.
inline constexpr double kFullPageWidth = 1078;
inline constexpr double kHalfPageWidth = 510;
inline constexpr double kPhoneWidth = 332;

// More rows than a chart can be read with; tables have all.
inline constexpr std::size_t kMostChartRows = 40;

enum class FigureWidth : std::uint8_t { kWhole, kHalf };
enum class Fold : std::uint8_t { kOpen, kFolded };

// `content` is markup already; title and words are text.
struct PageFigure {
  std::string title;
  std::string words;
  std::string content;
  Fold fold = Fold::kOpen;
  FigureWidth width = FigureWidth::kWhole;
};

// One part of a page: markup that stands above its figures, and those.
struct PagePart {
  std::string head;
  std::vector<PageFigure> figures;
};

// Folded from so many rows of a table or chart on that nobody reads them in passing.
Fold fold_of(std::size_t num_rows);

// Halves that follow each other stand side by side on a wide screen, open ones first.
std::string figures_markup(const std::string& part_anchor, const std::vector<PageFigure>& figures);

// A link to each figure.
std::string figure_links(const std::string& part_anchor, const std::vector<PageFigure>& figures);

// A key figure: its name, its value in large, and a line below; all of it text.
std::string page_tile(const std::string& name, const std::string& value, const std::string& more);

// One picture for wide and one for narrow screens; the style shows one of them.
std::string for_both_widths(const std::function<Picture(double)>& draw, double wide);

// " Shown: 40 of 500 points, baselines first."; empty if all are.
std::string words_left_out(std::size_t drawn, std::size_t all, const std::string& order);

}  // namespace rematch
