// A report as the text of its file, without a tree of all its points: those of a sweep are made
// into text on several cores at once.
#pragma once

#include <string>

#include "reports/record/report.h"

namespace rematch {

// The same bytes as report_to_json(report).dump(2) and a newline.
std::string report_to_text(const Report& report);

}  // namespace rematch
