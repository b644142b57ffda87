// Reads and writes traces as files, "rematch.trace/1.1". A file stores each distinct span once, and
// the order of the spans (spans.h).
//
// A reference in a span is one of three things: an index into the span's own list; -1, -2, ... for
// the first, second, ... entry of the `outside_*` list; or null for no reference.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws std::invalid_argument if the trace is not valid (trace_check.h).
Json trace_to_json(const Trace& trace);

// Throws FormatError; the message has the JSON path if the fault is in a single place. Ignores
// unknown keys. Computes the classes and flops of ops if the file does not contain them.
Trace trace_from_json(const Json& json);

}  // namespace rematch
