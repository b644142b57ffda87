// The measured part of a front's file. Beside front_json.h, which reads and writes the rest.
#pragma once

#include <cstdint>

#include "policies/base/json_fwd.h"
#include "policies/search/front/front.h"

namespace rematch {

Json measured_to_json(const FrontPoint& point);  // null: not measured
Json measurement_to_json(const FrontMeasurement& measurement);

// They throw FormatError with the JSON path.
MeasuredFigures measured_from_json(const JsonField& field);
FrontMeasurement measurement_from_json(const JsonField& field, std::int64_t num_points);

}  // namespace rematch
