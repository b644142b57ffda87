// Traces as files, "rematch.trace/1.1": each distinct block type once, the spans that say where
// it stands, and the rest of the step. Lossless: reading gives back every id.
//
// Inside a type a reference is an index into the type's own list, -1, -2, ... for the first,
// second,
// ... entry of the span's `outside_*` list, or null for none.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws std::invalid_argument if the trace is not valid (trace_check.h).
Json trace_to_json(const Trace& trace);

// Throws FormatError, with the JSON path where one place is at fault. Ignores unknown keys. A
// writer that leaves out the class of ops leaves class and flops to be worked out here.
Trace trace_from_json(const Json& json);

}  // namespace rematch
