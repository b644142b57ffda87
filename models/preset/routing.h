// How many rows a rank's experts are assumed to get where no data decides it, as on meta.
#pragma once

#include <cstdint>

#include "models/preset/preset.h"

namespace rematch {

// Returns the routing skew of the spec in percent: 100 for balanced routing.
std::int64_t routing_skew_percent(const ModelSpec& spec);

// See skewed_rows() in policies/trace/routing_skew.h, which folders of model code do not include.
std::int64_t assumed_rows(std::int64_t balanced_rows, std::int64_t skew_percent);

}  // namespace rematch
