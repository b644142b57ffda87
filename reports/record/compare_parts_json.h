// JSON of what compare and gate records share: the two sides, and what differs between them.
#pragma once

#include <optional>

#include "reports/record/compare.h"

namespace rematch {

// Whole numbers without a decimal point; absent and not finite are null.
Json number_to_json(std::optional<double> number);

Json source_to_json(const SourceRecord& source);
SourceRecord source_from_json(const JsonField& field);

Json difference_to_json(const NamedDifference& difference);
NamedDifference difference_from_json(const JsonField& field);

}  // namespace rematch
