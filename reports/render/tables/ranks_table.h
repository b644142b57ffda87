// Points that ran on several ranks: their collectives by kind, and the ranks' peaks.
#pragma once

#include <string>

#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// A row for each point that has ranks; a column for each kind of collective that any of them ran,
// "forward/recompute/backward" of a step on each rank. No rows: no point has ranks.
table::Grid ranks_grid(const Comparison& comparison);

// Explains the columns of ranks_grid(); empty where it has no rows.
std::string ranks_words(const Comparison& comparison);

// Points whose plan keeps tensors on the host: how much, and the copies.

// A row for each point that offloads. No rows: none does.
table::Grid host_grid(const Comparison& comparison);

// Explains the columns of host_grid(); empty where it has no rows.
std::string host_words(const Comparison& comparison);

}  // namespace rematch
