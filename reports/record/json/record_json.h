// Reports and points as JSON, "rematch.report/1.0" and "rematch.point/1.0". Readers throw
// FormatError with the key's path. Keys of a newer minor version are kept and written again.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "reports/record/report.h"

namespace rematch {

Json report_to_json(const Report& report);
// Returns the same bytes as report_to_json(report).dump(2) and a newline, without building a tree
// of all points. Converts the points of large reports on several cores.
std::string report_to_text(const Report& report);
Report report_from_json(const Json& json);
// Reads a file's text point by point, so a report of 10,000 points never exists as one tree. Every
// error message starts with `name`.
Report report_from_text(std::string_view text, const std::string& name);

Json point_file_to_json(const PointFile& file);
PointFile point_file_from_json(const Json& json);

}  // namespace rematch
