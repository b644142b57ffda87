// Text that is safe inside HTML and SVG, elements and quoted attributes alike.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rematch {

// Escapes what means something in markup. Control characters other than newline and bytes that are
// not UTF-8 become U+FFFD: XML has no way to write them.
std::string escape_markup(std::string_view text);

// Bytes of the UTF-8 character at the front of `text`; 0 if there is none or it is malformed.
std::size_t utf8_length(std::string_view text);

}  // namespace rematch
