// Renders reports, compare records and searched fronts as one HTML file. The file works without a
// network and without scripts, embeds its pictures, and supports light and dark screens from phone
// size up. All text from files is escaped.
#pragma once

#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

struct NamedReport {
  std::string name;  // path of the file, as the user wrote it
  Report report;
};

struct NamedCompare {
  std::string name;
  CompareRecord record;
};

struct NamedFront {
  std::string name;
  FrontRecord record;
};

std::string render_page(const std::vector<NamedReport>& reports,
                        const std::vector<NamedCompare>& compares = {},
                        const std::vector<NamedFront>& fronts = {});

}  // namespace rematch
