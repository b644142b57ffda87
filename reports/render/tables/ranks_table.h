// Points that ran on several ranks: their collectives by kind, and the ranks' peaks.
#pragma once

#include <string>

#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

struct ExplainedGrid {
  table::Grid grid;
  std::string words;  // what its columns are
};

// A row for each point that has ranks; a column for each kind of collective that any of them ran,
// "forward/recompute/backward" of a step on each rank. No rows: no point has ranks.
ExplainedGrid ranks_grid(const Comparison& comparison);

// Points whose plan keeps tensors on the host: how much, and the copies. No rows: none does.
ExplainedGrid host_grid(const Comparison& comparison);

}  // namespace rematch
