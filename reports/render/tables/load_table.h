// The batch, or number of tokens, with the highest throughput on a device: the loads that were
// tried, as a table and a sentence.
#pragma once

#include <cstddef>
#include <string>

#include "policies/search/loads/loads.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// Returns the table and the sentence. Empty if no load fits.
std::string loads_to_text(const LoadsRecord& record, TableFormat format, std::size_t width);

}  // namespace rematch
