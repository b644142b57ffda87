// The report of an interrupted run.
#pragma once

#include <string>

#include "reports/record/report.h"

namespace rematch {

// Writes it where the whole report would be, so that it can be merged and compared; a report of as
// many points that is there stays. `output` empty: nothing is written. Returns what is to be said
// of it behind a line, empty for nothing.
std::string keep_partial(const std::string& output, const Report& partial);

}  // namespace rematch
