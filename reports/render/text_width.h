// How wide text will be, without a font engine: by the widths of DejaVu Sans, the widest of the
// usual interface fonts, so that what fits here fits anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rematch {

double text_width(std::string_view text, double size);

// Cut with an ellipsis where it is wider than `width`.
std::string fit_text(std::string_view text, double size, double width);

// Bytes of the UTF-8 character at the front of `text`; 0: none, or a malformed one.
std::size_t utf8_length(std::string_view text);

}  // namespace rematch
