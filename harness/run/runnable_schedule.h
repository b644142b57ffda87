// Says which pipeline schedules `rematch run` has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policies/base/rejected.h"

namespace rematch {

// Returns Rejected for a model whose pipeline can be predicted, but not run. `dimensions` are those
// of the model.
std::optional<Rejected> reject_unrunnable_schedule(
    const std::map<std::string, std::int64_t>& dimensions);

}  // namespace rematch
