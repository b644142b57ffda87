// Results of a benchmark, as rows of the table that scripts/benchmark prints: one JSON object per
// line on stdout. Google Benchmark's own report goes to stderr.
#pragma once

#include <optional>
#include <string>

#include "reports/statistics/statistics.h"

namespace rematch::benchmarks {

struct Row {
  std::string target;  // the group of the row in the table: "step", "schedules"
  std::string what;
  std::string unit;  // "x" (a ratio), "ns", "ms", "s" or "MiB"
  Estimate measured;
  std::optional<double> limit;  // maximum
  std::string note;
  bool strictly = false;  // whether a value equal to the limit fails
};

void add_row(Row row);

// Runs the registered benchmarks, then prints the rows. Returns the exit code. The exit code is 1
// if Google Benchmark rejects the command line or no benchmark ran.
int run_benchmarks(int argc, char** argv);

}  // namespace rematch::benchmarks
