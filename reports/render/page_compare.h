// A compare record as a part of a page: its verdict, one forest plot a metric, what explains the
// differences, and what could not be compared.
#pragma once

#include <string>

#include "reports/record/compare.h"

namespace rematch {

std::string page_compare(const CompareRecord& record);

}  // namespace rematch
