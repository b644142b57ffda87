// Reads and writes traces as files, "rematch.trace/1.1". A file stores each distinct block type
// once, the spans that say where a type occurs, and everything else about the step. Reading
// restores every id.
//
// A reference inside a type is one of three things: an index into the type's own list; -1, -2, ...
// for the first, second, ... entry of the span's `outside_*` list; or null for no reference.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws std::invalid_argument if the trace is not valid (trace_check.h).
Json trace_to_json(const Trace& trace);

// Throws FormatError; the message has the JSON path if the fault is in a single place. Ignores
// unknown keys. If the file does not state the classes of ops, computes classes and flops.
Trace trace_from_json(const Json& json);

}  // namespace rematch
