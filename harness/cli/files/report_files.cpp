#include "harness/cli/files/report_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <thread>

#include "harness/cli/flags/require.h"
#include "policies/base/file.h"
#include "reports/record/json/record_json.h"

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

std::vector<Report> read_reports(const std::vector<std::string>& paths) {
  constexpr std::size_t kMostReaders = 8;
  std::vector<Report> reports(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next{0};
  const auto read_some = [&] {
    for (std::size_t index = next++; index < paths.size(); index = next++) {
      try {
        reports[index] = read_report(paths[index]);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    }
  };
  const std::size_t num_cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::future<void>> readers;
  for (std::size_t reader = 1; reader < std::min({num_cores, kMostReaders, paths.size()});
       ++reader) {
    readers.push_back(std::async(std::launch::async, read_some));
  }
  read_some();
  for (std::future<void>& reader : readers) reader.get();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return reports;
}

}  // namespace rematch
