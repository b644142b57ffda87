// Helpers for writing Python files. Private to policies/export.
#pragma once

#include <string>
#include <string_view>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the text as a Python string on one line.
std::string in_python_quotes(std::string_view text);

// Escapes text for the file's docstring.
std::string in_docstring(std::string text);

// Returns the template with this name. Replaces the placeholder @APPLY@ by the functions that all
// templates share, and leaves other placeholders in the text.
std::string template_of(std::string_view name);

// Returns the text of the PREDICTED dict in an exported file: peak bytes with and without the plan,
// and how often each op runs again. The peaks exclude the bytes held before the step. Assumes
// schedule whole_region, because torch recomputes whole regions.
std::string predicted_text(const Trace& trace, const Plan& plan);

}  // namespace rematch
