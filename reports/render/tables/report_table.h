// The comparison of a report's policies as a table: what each executed, its peak, its price and a
// verdict in words. Every point has a row, failed ones too.
#pragma once

#include <string>

#include "reports/record/report.h"
#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// ASCII or Markdown, newline at the end. Text fits `width` columns unless a single cell does not.
std::string render_table(const Report& report, TableFormat format, std::size_t width = 120);

// The rows of one comparison.
table::Grid comparison_grid(const Comparison& comparison);

// "1 of 7 points did not finish: save_compute on_demand (oom at 90.0 MiB)."; empty if all did.
std::string failure_words(const Comparison& comparison);

// "AMD EPYC, 2 threads, LibTorch 2.11.0"; empty if nothing is known.
std::string machine_words(const Environment& machine);

}  // namespace rematch
