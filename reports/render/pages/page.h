// Reports, compare records and searched fronts as one HTML file: no network, no script, pictures
// inside, light and dark, for screens from a telephone's on. Everything that comes from a file is
// escaped.
#pragma once

#include <string>
#include <vector>

#include "policies/search/front/front_json.h"
#include "reports/record/compare.h"
#include "reports/record/report.h"

namespace rematch {

struct NamedReport {
  std::string name;  // as the user called it: a file
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
