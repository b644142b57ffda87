// The common part of several commands' provenances, for a report that is merged from theirs. Pure.
#pragma once

#include <map>
#include <string>

#include "reports/record/report.h"

namespace rematch {

// By whatever tells them apart; one at least. Members that differ are absent, but for the seed,
// which is the lowest, and the lines that make the figures again, which are joined by "&&".
Provenance provenance_in_common(const std::map<std::string, Provenance>& provenances);

}  // namespace rematch
