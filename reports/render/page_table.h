// The comparison table of a page: every point, failed ones too, each with its verdict below. On a
// narrow screen rows become cards.
#pragma once

#include <string>

#include "reports/render/comparison.h"

namespace rematch {

std::string page_table(const Comparison& comparison);

}  // namespace rematch
