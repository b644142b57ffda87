#include "harness/cli/report_files.h"

#include <future>

#include "harness/cli/require.h"
#include "policies/trace/file.h"
#include "reports/record/record_json.h"

namespace rematch {

Report read_report(const std::string& path) {
  try {
    return report_from_text(read_text_file(path), path);
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
}

std::pair<Report, Report> read_two_reports(const std::string& first, const std::string& second) {
  auto other = std::async(std::launch::async, [&second] { return read_report(second); });
  Report report = read_report(first);
  return {std::move(report), other.get()};
}

}  // namespace rematch
