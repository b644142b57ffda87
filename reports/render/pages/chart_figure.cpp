#include "reports/render/pages/chart_figure.h"

namespace rematch::page {

Figure chart_figure(const chart::Rows& chart, Fold fold, const std::string& more_words) {
  return {chart.title, chart.words + more_words, picture(draw(chart)), fold, FigureWidth::kColumn};
}

}  // namespace rematch::page
