// A compare record as a part of a page: its verdict, one forest plot a metric, what explains the
// differences, and what could not be compared.
#pragma once

#include "reports/record/compare.h"
#include "reports/render/page_figure.h"

namespace rematch {

PagePart page_compare(const CompareRecord& record);

}  // namespace rematch
