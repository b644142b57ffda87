// Checks conditions that every trace must satisfy, such as existing ids, order and ranges. Readers
// check them because a file may come from anywhere. Writers check them so that no broken file is
// written.
#pragma once

#include <optional>
#include <string>

#include "policies/trace/trace.h"

namespace rematch {

// Describes the first problem of the trace in one line. Returns nullopt if the trace is valid.
std::optional<std::string> trace_problem(const Trace& trace);

// Describes in one line the first op whose output shape depends on data. Such a trace is valid for
// its own step but does not predict the next one. Returns nullopt if there is no such op.
std::optional<std::string> data_dependence(const Trace& trace);

}  // namespace rematch
