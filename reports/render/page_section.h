// One comparison of a page: key figures, front, table and charts.
#pragma once

#include <string>

#include "reports/record/environment.h"
#include "reports/render/comparison.h"

namespace rematch {

std::string page_section(const Comparison& comparison, const Environment& environment);

}  // namespace rematch
