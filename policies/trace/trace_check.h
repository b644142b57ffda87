// Checks conditions that every trace must satisfy. Readers use these checks because a file may be
// broken, and writers so that they write only valid files.
#pragma once

#include <optional>
#include <string>

#include "policies/trace/trace.h"

namespace rematch {

// Describes the first problem of the trace in one line. Returns nullopt if the trace is valid.
std::optional<std::string> trace_problem(const Trace& trace);

// Describes in one line the first op whose output shape depends on data, or returns nullopt. A
// trace with such an op does not predict other steps.
std::optional<std::string> data_dependence(const Trace& trace);

}  // namespace rematch
