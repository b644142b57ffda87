#include "harness/run/child_point.h"

#include <signal.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>

#include "harness/run/device.h"
#include "harness/run/passes.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "reports/record/record_json.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

// A folder of its own for the files of one child, gone with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "rematch-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw FileError("cannot make a folder in '" + fs::temp_directory_path().string() +
                      "': " + std::strerror(errno) + "; set TMPDIR");
    }
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

PointRecord empty_record(const PointRequest& request) {
  PointRecord record;
  record.identity = request.identity;
  record.policy = request.policy;
  record.device = device_kind(request.device);
  return record;
}

}  // namespace

PointRecord measure_in_child(const PointRequest& request, const ChildRule& rule,
                             const SayRetry& say_retry) {
  const ScratchFolder scratch;
  const std::string request_file = scratch.file("request.json");
  const std::string result_file = scratch.file("result.json");
  write_json_file(request_file, request_to_json(request));
  PointRecord record;
  for (int attempt = 1;; ++attempt) {
    const ChildResult result =
        run_child({own_executable(), "point", request_file, result_file}, rule.limit);
    if (result.end == ChildEnd::kInterrupted) {
      throw Interrupted(InterruptGuard::signal().value_or(0));
    }
    if (result.end == ChildEnd::kExited && result.code == 0 && fs::exists(result_file)) {
      return point_file_from_json(read_json_file(result_file)).point;
    }
    record = empty_record(request);
    describe_end(result, rule.limit, attempt, record);
    if (attempt > rule.most_retries || !deserves_retry(result)) return record;
    say_retry(record.reason);
  }
}

bool deserves_retry(const ChildResult& result) {
  const bool killed = result.end == ChildEnd::kSignalled && result.code == SIGKILL;
  return result.end == ChildEnd::kTimedOut || (killed && !result.memory_was_short);
}

void describe_end(const ChildResult& result, std::chrono::milliseconds limit, int attempts,
                  PointRecord& record) {
  record.failure.emplace();
  const std::string said = last_line(result.error_tail);
  const std::string resident = "; it held " + format_bytes(result.peak_resident) + " at most";
  const std::string again =
      attempts == 1 ? "" : " in the last of " + std::to_string(attempts) + " attempts";
  if (result.end == ChildEnd::kTimedOut) {
    record.status = PointStatus::kTimeout;
    record.reason = "no result after " + std::to_string(limit.count()) + " ms" + again + resident +
                    "; raise --timeout, or use fewer steps";
    return;
  }
  if (result.end == ChildEnd::kSignalled) {
    record.failure->signal = result.code;
    const bool ran_out = result.code == SIGKILL && result.memory_was_short;
    record.status = ran_out ? PointStatus::kOom : PointStatus::kCrash;
    if (ran_out) {
      record.reason = "killed, as the system does when memory runs out" + resident;
    } else if (result.code == SIGKILL) {
      record.reason = "killed while memory was free" + again + resident;
    } else {
      record.reason =
          "ended by signal " + std::to_string(result.code) + " (" + strsignal(result.code) + ")";
    }
  } else {
    record.failure->exit_code = result.code;
    record.status = PointStatus::kCrash;
    record.reason = "exited with code " + std::to_string(result.code) + " and no result";
  }
  if (!said.empty()) record.reason += ": " + said;
}

void answer_request(const std::string& request_file, const std::string& result_file) {
  const PointRequest request = request_from_json(read_json_file(request_file));
  PointFile result;
  result.point = run_passes(request);
  write_json_file(result_file, point_file_to_json(result));
}

}  // namespace rematch
