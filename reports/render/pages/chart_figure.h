// A chart of rows as a figure of a page.
#pragma once

#include <cstddef>
#include <string>

#include "reports/render/charts/rows.h"
#include "reports/render/pages/elements.h"

namespace rematch::page {

// More rows than a chart can be read with; tables have all.
inline constexpr std::size_t kMostChartRows = 40;

// As wide as a column, with the chart's title and words, and `more_words` after them.
Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words = "");

}  // namespace rematch::page
