// Text that a user typed, as a message of one line shows it.
#pragma once

#include <string>
#include <string_view>

namespace rematch {

// 'text' in single quotes; control characters become \n, \t or \x1b, and what is longer than a line
// is cut.
std::string in_quotes(std::string_view text);

}  // namespace rematch
