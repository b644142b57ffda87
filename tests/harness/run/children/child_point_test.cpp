#include "harness/run/children/child_point.h"

#include <signal.h>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::seconds;

TEST_CASE(
    "a child process is restarted if something other than its point may have caused the failure") {
  const auto ended = [](ChildEnd end, int code, bool memory_was_short) {
    ChildResult result;
    result.end = end;
    result.code = code;
    result.memory_was_short = memory_was_short;
    return result;
  };
  CHECK(deserves_retry(ended(ChildEnd::kTimedOut, 0, false)));
  CHECK(deserves_retry(ended(ChildEnd::kSignalled, SIGKILL, false)));
  CHECK_FALSE(deserves_retry(ended(ChildEnd::kSignalled, SIGKILL, true)));
  CHECK_FALSE(deserves_retry(ended(ChildEnd::kSignalled, SIGSEGV, false)));
  CHECK_FALSE(deserves_retry(ended(ChildEnd::kExited, 1, false)));
}

TEST_CASE("each of several ranks writes a separate file") {
  CHECK(file_of_rank("full.pickle", 0, 1) == "full.pickle");
  CHECK(file_of_rank("full.pickle", 1, 2) == "full.rank-1-of-2.pickle");
  CHECK(file_of_rank("/a.b/full", 15, 64) == "/a.b/full.rank-15-of-64");
}

TEST_CASE("the way a child process ends determines the status and reason of its point") {
  PointRecord record;
  ChildResult result;
  result.peak_resident = Bytes{3 << 20};
  const auto describe = [&](int attempts = 1) {
    record = PointRecord();
    describe_end(result, seconds(5), attempts, record);
  };

  result.end = ChildEnd::kTimedOut;
  describe();
  CHECK(record.status == PointStatus::kTimeout);
  CHECK(record.reason ==
        "no result after 5000 ms; its peak resident memory was 3.00 MiB; raise --timeout, or use "
        "fewer steps");
  describe(/*attempts=*/2);
  CHECK_THAT(record.reason, Catch::StartsWith("no result after 5000 ms in the last of 2 attempts"));

  result.end = ChildEnd::kSignalled;
  result.code = SIGKILL;
  result.memory_was_short = true;
  describe();
  CHECK(record.status == PointStatus::kOom);
  CHECK(record.failure->signal == SIGKILL);
  CHECK_THAT(record.reason, Catch::Contains("3.00 MiB"));

  result.memory_was_short = false;
  describe(/*attempts=*/2);
  CHECK(record.status == PointStatus::kCrash);
  CHECK(record.failure->signal == SIGKILL);
  CHECK_THAT(record.reason,
             Catch::Contains("killed while memory was free") && Catch::Contains("2 attempts"));

  result.code = SIGSEGV;
  result.error_tail = "one\ntwo\n";
  describe();
  CHECK(record.status == PointStatus::kCrash);
  CHECK_THAT(record.reason, Catch::EndsWith(": two"));

  result.end = ChildEnd::kExited;
  result.code = 3;
  describe();
  CHECK(record.status == PointStatus::kCrash);
  CHECK(record.failure->exit_code == 3);
}

}  // namespace
}  // namespace rematch
