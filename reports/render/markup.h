// Text that is safe inside HTML and SVG, elements and quoted attributes alike.
#pragma once

#include <string>
#include <string_view>

namespace rematch {

// Escapes what means something in markup. Control characters other than newline and bytes that are
// not UTF-8 become U+FFFD: XML has no way to write them.
std::string escape_markup(std::string_view text);

}  // namespace rematch
