// Makes text safe inside HTML and SVG, both in elements and in quoted attributes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rematch {

// Escapes characters that are special in markup. Control characters except newline, and invalid
// UTF-8, become U+FFFD, because XML does not allow them.
std::string escape_markup(std::string_view text);

// Returns the number of bytes of the UTF-8 character at the front of `text`; 0 if `text` is empty
// or malformed.
std::size_t utf8_length(std::string_view text);

}  // namespace rematch
