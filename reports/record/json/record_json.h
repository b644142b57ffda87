// Reports and points as JSON, "rematch.report/1.0" and "rematch.point/1.0". Readers throw
// FormatError with the key's path; keys of a newer minor version are kept and written again.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "reports/record/report.h"

namespace rematch {

Json report_to_json(const Report& report);
// The same bytes as report_to_json(report).dump(2) and a newline, without a tree of all its points:
// those of a sweep are made into text on several cores at once.
std::string report_to_text(const Report& report);
Report report_from_json(const Json& json);
// From a file's text, point by point: a report of 10,000 points has no tree as a whole. `name`
// stands before every message.
Report report_from_text(std::string_view text, const std::string& name);

Json point_file_to_json(const PointFile& file);
PointFile point_file_from_json(const Json& json);

}  // namespace rematch
