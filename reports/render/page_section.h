// One comparison of a page: key figures, front, table and charts.
#pragma once

#include "reports/record/environment.h"
#include "reports/render/comparison.h"
#include "reports/render/page_figure.h"

namespace rematch {

PagePart page_section(const Comparison& comparison, const Environment& environment);

}  // namespace rematch
