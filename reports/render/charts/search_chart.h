// A searched front: every plan's predicted peak and step time, joined to what its run measured, and
// the baselines beside it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/search/front_json.h"
#include "reports/render/svg.h"

namespace rematch {

// Several lines: what the plan keeps, its peak and step time, predicted and measured.
std::string describe_front_point(const Front& front, const FrontPoint& point,
                                 const std::string& name);

// `shown`: indices of points.
Picture draw_search(const FrontRecord& record, const std::vector<std::size_t>& shown, double width);

}  // namespace rematch
