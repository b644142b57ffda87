// The measured front: peak bytes across, step time upwards, one marker a point.
#pragma once

#include <optional>
#include <vector>

#include "policies/trace/bytes.h"
#include "reports/render/charts/chart_point.h"
#include "reports/render/svg.h"

namespace rematch {

// False where no point has both a peak and a step time; then there is no front to draw.
bool has_front(const std::vector<ChartPoint>& points);

// `device_limit` is drawn as a line where it is near the points, else told in words.
Picture draw_front(const std::vector<ChartPoint>& points, std::optional<Bytes> device_limit,
                   double width);

}  // namespace rematch
