#include "reports/render/page_table.h"

#include "reports/render/page_grid.h"
#include "reports/render/row.h"

namespace rematch {
namespace {

bool is_alarming(VerdictKind kind) {
  return kind == VerdictKind::kFailed || kind == VerdictKind::kDifferent ||
         kind == VerdictKind::kMiscounted;
}

}  // namespace

std::string page_table(const Comparison& comparison) {
  Grid grid;
  grid.columns = columns();
  for (const ComparedPoint& compared : comparison.points) grid.rows.push_back(make_row(compared));
  return page_grid(
      grid, [&](std::size_t row) { return is_alarming(comparison.points[row].verdict.kind); });
}

}  // namespace rematch
