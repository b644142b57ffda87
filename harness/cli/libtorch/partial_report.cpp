#include "harness/cli/libtorch/partial_report.h"

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

std::size_t num_points_in(const std::string& file) {
  try {
    return report_from_text(read_text_file(file), file).points.size();
  } catch (const FileError&) {
    return 0;
  } catch (const FormatError&) {
    return 0;
  }
}

}  // namespace

std::string keep_partial(const std::string& output, const Report& partial) {
  if (output.empty() || partial.points.empty()) return "";
  if (num_points_in(output) >= partial.points.size()) {
    return "; " + output + " is of an earlier run, and stays";
  }
  try {
    write_json_file(output, report_to_json(partial));
  } catch (const FileError& error) {
    return std::string("; ") + error.what();
  }
  return "; " + output + " is the report of " + std::to_string(partial.points.size()) + " of " +
         std::to_string(partial.planned.size()) + " points";
}

}  // namespace rematch
