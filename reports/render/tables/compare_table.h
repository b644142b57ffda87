// A compare record as a table: a row for each point of both reports, explanations of its
// differences, and the points that could not be compared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/record/compare.h"
#include "reports/render/tables/grid.h"

namespace rematch {

std::string render_compare(const CompareRecord& record, TableFormat format,
                           std::size_t width = 120);

// The rows with the same title, which names the model, the device and the dimensions.
struct CompareGrid {
  std::string title;
  table::Grid grid;
};

struct CompareGrids {
  std::vector<CompareGrid> grids;
  std::string left_out_words;  // says how many rows are not shown; may be empty
};

// If there are more rows than this, equal rows are only counted.
inline constexpr std::size_t kMaxEqualRows = 100;

CompareGrids compare_grids(const CompareRecord& record);

// Describes for all rows together how many step times may be noise, and why. May be empty.
std::string noise_words(const CompareRecord& record);

// Returns text such as "base.json (base, commit 0123456) and new.json (candidate, commit 89abcde
// with local changes)".
std::string sources_words(const CompareRecord& record);

// Returns text such as "peak allocated".
std::string words_of(Metric metric);

// Returns a line for each point that could not be compared, with the reason.
std::vector<std::string> uncompared_lines(const CompareRecord& record);

// Returns how similar points of the two reports differ, such as "seed 0 in the base, 1 in the
// candidate". Empty if the other report has no similar point.
std::string identity_words(const UncomparedPoint& point);

}  // namespace rematch
