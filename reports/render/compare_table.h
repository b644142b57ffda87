// A compare record as a table for people: a line for each point that both reports have, what
// explains its differences below it, and the points that could not be compared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/record/compare.h"
#include "reports/render/grid.h"

namespace rematch {

// "seed 0 in the base, 1 in the candidate"; empty: no point of the other report is like this one.
std::string identity_words(const UncomparedPoint& point);

// The rows of one model and shape.
struct CompareGrid {
  std::string title;
  Grid grid;
};

struct CompareGrids {
  std::vector<CompareGrid> grids;
  std::size_t left_out = 0;  // rows without a difference, of which there are many
};

CompareGrids compare_grids(const CompareRecord& record);

// Of more rows than this, those without any difference are counted instead of shown.
inline constexpr std::size_t kMostEqualRows = 100;

std::string render_compare(const CompareRecord& record, TableFormat format,
                           std::size_t width = 120);

}  // namespace rematch
