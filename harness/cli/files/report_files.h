// Reports that a command line names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/record/report.h"

namespace rematch {

// Throws UsageError if the file cannot be read, FormatError, with its path, if it is no report.
Report read_report(const std::string& path);

// Both at once, each by its own thread: of large reports, reading is most of the work.
std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second);

// All of them, in this order, on as many cores as there are. Throws what read_report() throws for
// the first one that it cannot read.
std::vector<Report> read_reports(const std::vector<std::string>& paths);

}  // namespace rematch
