// What a page shows of a comparison, of a compare record and of a searched front.
#pragma once

#include "policies/search/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/environment.h"
#include "reports/render/comparison.h"
#include "reports/render/pages/elements.h"

namespace rematch::page {

Part comparison_part(const Comparison& comparison, const Environment& environment);
Part compare_part(const CompareRecord& record);
Part front_part(const FrontRecord& record);

}  // namespace rematch::page
