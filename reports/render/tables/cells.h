// Cells of measured quantities: what was not measured is a dash in every table.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "policies/base/bytes.h"

namespace rematch::table {

std::string bytes_cell(const std::optional<Bytes>& bytes);
std::string duration_cell(const std::optional<std::chrono::nanoseconds>& time);

}  // namespace rematch::table
