// The part of a page for a compare record: verdict, ratios that differ, tables, what explains them.
#pragma once

#include "reports/record/compare.h"
#include "reports/render/pages/elements.h"

namespace rematch::page {

Part compare_part(const CompareRecord& record);

}  // namespace rematch::page
