// Shows the result of a search for the batch size, or the number of tokens, with the highest
// throughput on a device.
#pragma once

#include <cstddef>
#include <string>

#include "policies/search/loads/loads.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// Returns a table of the sizes that were tried, and a sentence about the best size. Empty if no
// size fits on the device.
std::string loads_to_text(const LoadsRecord& record, TableFormat format, std::size_t width);

}  // namespace rematch
