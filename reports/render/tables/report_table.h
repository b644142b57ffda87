// A report's policies as a table. A row shows the ops that a policy executed, its peak, its cost in
// time, and a verdict in words. Failed points also have a row.
#pragma once

#include <string>

#include "reports/record/report.h"
#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// ASCII or Markdown, with a newline at the end. Lines have at most `width` characters, unless a
// single cell is wider.
std::string render_table(const Report& report, TableFormat format, std::size_t width = 120);

// Returns the rows of one comparison.
table::Grid comparison_grid(const PolicyComparison& comparison);

// Returns text such as "1 of 7 points did not finish: save_compute on_demand (oom at 90.0 MiB).";
// empty if all points finished.
std::string failure_words(const PolicyComparison& comparison);

// Returns text such as "AMD EPYC, 2 threads, LibTorch 2.11.0"; empty if nothing is known.
std::string machine_words(const Environment& machine);

}  // namespace rematch
