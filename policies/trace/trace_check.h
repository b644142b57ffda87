// Conditions that every trace must satisfy before anything relies on it: ids that exist, order,
// ranges. Files come from anywhere, so readers check; writers check so that no file is born broken.
#pragma once

#include <optional>
#include <string>

#include "policies/trace/trace.h"

namespace rematch {

// The first thing wrong with the trace, in one line; nothing if it is valid.
std::optional<std::string> trace_problem(const Trace& trace);

// The first op whose result's shape depends on data, in one line: a valid trace of one step, which
// says nothing of the next. Nothing if there is none.
std::optional<std::string> data_dependence(const Trace& trace);

}  // namespace rematch
