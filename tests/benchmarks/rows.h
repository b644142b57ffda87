// Prints benchmark results as rows for the table of scripts/benchmark: one JSON object per line on
// stdout. Google Benchmark's own report goes to stderr.
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
  // true: the value must be below the limit; false: it may also equal the limit
  bool strictly = false;
};

void add_row(Row row);

// Runs the registered benchmarks and prints the rows. Returns exit code 1 if Google Benchmark
// rejects the command line or no benchmark ran, otherwise 0.
int run_benchmarks(int argc, char** argv);

}  // namespace rematch::benchmarks
