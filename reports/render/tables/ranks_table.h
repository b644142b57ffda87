// Points that ran on several ranks: their collectives by kind, and the ranks' peaks.
#pragma once

#include <string>

#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

struct ExplainedGrid {
  table::Grid grid;
  std::string words;  // text that explains the columns
};

// Returns a row for each point that has ranks, and a column for each kind of collective that any
// point ran. Cells are "forward/recompute/backward" per step on each rank.
ExplainedGrid ranks_grid(const PolicyComparison& comparison);

// Returns a row for each point whose plan keeps tensors on the host, with the bytes and the copies.
ExplainedGrid host_grid(const PolicyComparison& comparison);

}  // namespace rematch
