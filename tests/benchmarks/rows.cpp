#include "tests/benchmarks/rows.h"
#include "policies/base/json.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace rematch::benchmarks {
namespace {

std::vector<Row>& rows() {
  static std::vector<Row> table;
  return table;
}

void print(const Row& row) {
  nlohmann::ordered_json json = {{"target", row.target}, {"what", row.what},
                                 {"unit", row.unit},     {"measured", row.measured.value},
                                 {"interval", nullptr},  {"limit", nullptr},
                                 {"note", row.note},     {"strictly", row.strictly}};
  if (row.measured.interval) {
    json["interval"] = {row.measured.interval->low, row.measured.interval->high};
  }
  if (row.limit) json["limit"] = *row.limit;
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

void add_row(Row row) { rows().push_back(std::move(row)); }

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::ConsoleReporter reporter(benchmark::ConsoleReporter::OO_None);
  reporter.SetOutputStream(&std::cerr);
  reporter.SetErrorStream(&std::cerr);
  const std::size_t num_run = benchmark::RunSpecifiedBenchmarks(&reporter);
  for (const Row& row : rows()) print(row);
  return num_run > 0 ? 0 : 1;
}

}  // namespace rematch::benchmarks
