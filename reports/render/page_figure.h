// Figures of a page: a title, a sentence, and pictures laid out for wide and for narrow screens.
#pragma once

#include <functional>
#include <string>

#include "reports/render/svg.h"

namespace rematch {

// Widths that pictures are laid out for: the page's whole width, half of it, and a telephone's.
inline constexpr double kFullPageWidth = 1078;
inline constexpr double kHalfPageWidth = 510;
inline constexpr double kPhoneWidth = 332;

// `content` is markup already; title and words are text.
std::string page_figure(const std::string& title, const std::string& words,
                        const std::string& content);

// One picture for wide and one for narrow screens; the style shows one of them.
std::string for_both_widths(const std::function<Picture(double)>& draw, double wide);

// " Shown: 40 of 500 points, baselines first."; empty if all are.
std::string words_left_out(std::size_t drawn, std::size_t all, const std::string& order);

}  // namespace rematch
