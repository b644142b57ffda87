// Points whose plan keeps tensors on the host: how much, and the copies.
#pragma once

#include <string>

#include "reports/render/comparison.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// A row for each point that offloads. No rows: none does.
table::Grid host_grid(const Comparison& comparison);

// Explains the columns of host_grid(); empty where it has no rows.
std::string host_words(const Comparison& comparison);

}  // namespace rematch
