// Measures how long compare, gate and render take on large reports. To time ten thousand points of
// 5 KB:
//   build/lite/tests/harness/cli/cli_test '[.speed]'
// The other tests use a thirtieth of the points, and limits that leave room for sanitizers.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/reports/sample_sweep.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// All steps of a round get the same random speed.
Report large_report(int num_points, std::uint32_t seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> noise(0, 0.005);
  Report report{sample_provenance(), {}, {}, {}};
  PointRecord point = sample_point("none");
  point.steps.resize(1);  // removes the second step, whose loss is not finite
  point.kernels.reset();  // a run on a CPU launches no kernels
  point.time->device_state.reset();
  for (int index = 0; index < num_points; ++index) {
    point.policy = "layers([" + std::to_string(index) + "])";
    point.identity.plan_sha256 = sample_point(point.policy).identity.plan_sha256;
    std::string unique = std::to_string(index);
    point.identity.plan_sha256.replace(0, unique.size(), unique);
    point.identity.plan_sha256.replace(unique.size(), 1, "f");
    for (auto& round : point.time->samples) {
      const double speed = 1 + noise(bits);
      for (auto& sample : round) {
        sample = std::chrono::nanoseconds(std::llround(1e7 * speed));
      }
    }
    point.time->step_median =
        (point.time->samples.front().front() + point.time->samples.back().front()) / 2;
    report.points.push_back(point);
  }
  return report;
}

// A busy machine increases the wall time, but not the processor time.
struct Timed {
  Outcome outcome;
  double seconds;
  double processor_seconds;
};

double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Timed timed(const std::string& arguments) {
  const double before = processor_seconds_of_children();
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = rematch(arguments);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return {std::move(outcome), taken.count(), processor_seconds_of_children() - before};
}

struct Files {
  explicit Files(int num_points)
      : base(scratch.file("base.json")), other(scratch.file("other.json")) {
    write_json_file(base, report_to_json(large_report(num_points, 1)));
    write_json_file(other, report_to_json(large_report(num_points, 2)));
  }
  ScratchFolder scratch;
  std::string base;
  std::string other;
};

}  // namespace

TEST_CASE("compare and gate take little time for 300 points") {
  const Files files(300);
  const Timed compare = timed("compare " + files.base + " " + files.other);
  CHECK(compare.outcome.code == 0);
  CHECK_THAT(compare.outcome.out, Catch::Contains("300 rows"));
  CHECK(compare.processor_seconds < 2);
  const Timed gate =
      timed("gate " + files.other + " --max-loss-difference 1 --reference " + files.base);
  CHECK(gate.outcome.code == 0);
  CHECK(gate.processor_seconds < 2);
}

TEST_CASE("prints how long the commands take for large reports", "[.speed]") {
  const Files files(10'000);
  std::printf("two reports of 10,000 points, %.1f MB each\n",
              static_cast<double>(std::filesystem::file_size(files.base)) / 1e6);
  const Files fewer(500);
  const std::string sweep = fewer.scratch.file("sweep.json");
  write_json_file(sweep, report_to_json(large_sweep(500)));
  const std::string both = files.base + " " + files.other;
  for (const std::string& command :
       {"compare " + both, "gate " + files.other + " --loss bitwise --reference " + files.base,
        "render " + fewer.base + " -o " + fewer.scratch.file("page.html"),
        "render " + sweep + " -o " + fewer.scratch.file("sweep.html")}) {
    double best = 1e9;
    double processors = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Timed run = timed(command);
      best = std::min(best, run.seconds);
      processors = std::min(processors, run.processor_seconds);
    }
    std::printf("%-7s %.2f s, %.2f s of processor time, best of 3\n",
                command.substr(0, command.find(' ')).c_str(), best, processors);
  }
  for (const char* page : {"page.html", "sweep.html"}) {
    std::printf("%s of 500 points or comparisons: %.2f MB\n", page,
                static_cast<double>(std::filesystem::file_size(fewer.scratch.file(page))) / 1e6);
  }
}

}  // namespace rematch::testing
