// A searched front as lines and tables for a terminal or a pull request. Its sentences are in
// front_words.h, its measurements in front_measured.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/render/tables/front_words.h"
#include "reports/render/tables/grid.h"

namespace rematch {

std::string front_to_text(const FrontRecord& record, TableFormat format, std::size_t width,
                          const FrontFiles& files);

// Its points, by their indices, and the baselines: peak, step time, and both compared with none.
// Words of plans are those of short_saves(), in the line below a row.
table::Grid points_grid(const FrontRecord& record, const std::vector<std::size_t>& shown);
table::Grid baselines_grid(const FrontRecord& record);
std::vector<std::size_t> every_point(const Front& front);
// One row of these tables; `details` stand below it.
table::Row point_row(const FrontRecord& record, const std::string& name, const FrontPoint& point,
                     std::vector<std::string> details);

}  // namespace rematch
