// What a benchmark found, as rows of the table that scripts/benchmark prints: one JSON object a
// line on stdout. Google Benchmark's own report goes to stderr.
#pragma once

#include <optional>
#include <string>

#include "reports/statistics/statistics.h"

namespace rematch::benchmarks {

struct Row {
  std::string target;  // which target of the table it belongs to: "step", "schedules"
  std::string what;
  std::string unit;  // "x" for a ratio, "ns", "ms", "s", "MiB"
  Estimate measured;
  std::optional<double> limit;  // at most this
  std::string note;
  bool strictly = false;  // below the limit, not at it
};

void add_row(Row row);

// Runs the registered benchmarks, then prints the rows. Returns the exit code: 1 if the command
// line is not Google Benchmark's or nothing ran.
int run_benchmarks(int argc, char** argv);

}  // namespace rematch::benchmarks
