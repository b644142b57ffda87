// The comparison table of a page: every point, failed ones too, each with its verdict below.
#pragma once

#include <string>

#include "reports/render/comparison.h"

namespace rematch {

std::string page_table(const Comparison& comparison);

}  // namespace rematch
