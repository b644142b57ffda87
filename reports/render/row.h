// One point as the cells of a comparison table, in words and figures; how they are laid out is the
// table's business.
#pragma once

#include <vector>

#include "reports/render/comparison.h"
#include "reports/render/grid.h"

namespace rematch {

const std::vector<Column>& columns();

Row make_row(const ComparedPoint& compared);

}  // namespace rematch
