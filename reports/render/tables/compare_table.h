// A compare record as a table for people: a line for each point that both reports have, what
// explains its differences below it, and the points that could not be compared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/record/compare.h"
#include "reports/render/tables/grid.h"

namespace rematch {

std::string render_compare(const CompareRecord& record, TableFormat format,
                           std::size_t width = 120);

// The rows of one model and shape.
struct CompareGrid {
  std::string title;
  table::Grid grid;
};

struct CompareGrids {
  std::vector<CompareGrid> grids;
  std::string left_out_words;  // empty if every row is in a grid
};

// With more rows than this, those without any difference are counted instead of shown.
inline constexpr std::size_t kMostEqualRows = 100;

CompareGrids compare_grids(const CompareRecord& record);

// How many step times are unsure, and why, for all rows together; empty if every one is decided.
std::string noise_words(const CompareRecord& record);

// "base.json (base, commit 0123456) and new.json (candidate, commit 89abcde with local changes)"
std::string sources_words(const CompareRecord& record);

// "peak allocated"
std::string words_of(Metric metric);

// A line for each point that could not be compared, and why.
std::vector<std::string> uncompared_lines(const CompareRecord& record);

// "seed 0 in the base, 1 in the candidate"; empty: no point of the other report is like this one.
std::string identity_words(const UncomparedPoint& point);

}  // namespace rematch
