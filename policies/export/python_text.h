// Pieces of the Python files that this folder writes. Private to policies/export.
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

// Returns the template with this name. Inserts the functions that all templates share, and leaves
// the other placeholders.
std::string template_of(std::string_view name);

// Returns the entries of PREDICTED: the peaks in bytes with and without the plan, minus the bytes
// held before the step, and how often each op runs again. Predicts the step under whole_region even
// if the plan was made for another schedule, because torch runs regions as a whole.
std::string predicted_text(const Trace& trace, const Plan& plan);

}  // namespace rematch
