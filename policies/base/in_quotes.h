// Text that a user typed or a file holds, as a message of one line shows it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rematch {

// 'text' in single quotes; control characters become \n, \t or \x1b, and what is longer than a line
// is cut.
std::string in_quotes(std::string_view text);

// The same without quotes. Of what is longer than `longest` bytes the middle is left out, since a
// message says at its end what to do.
std::string on_one_line(std::string_view text, std::size_t longest);

}  // namespace rematch
