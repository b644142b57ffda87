#include "reports/render/tables/cells.h"

#include "reports/render/format.h"
#include "reports/render/tables/grid.h"

namespace rematch::table {

std::string bytes_cell(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : kNotMeasured;
}

std::string duration_cell(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? format_duration(*time) : kNotMeasured;
}

}  // namespace rematch::table
