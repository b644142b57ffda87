// Colours and typography of pages and pictures, for light and for dark surroundings.
#pragma once

#include <string>

namespace rematch {

// CSS that a picture of svg.h needs: the values of each Paint, fonts of text.
std::string picture_styles();

// CSS of the page around the pictures; needs picture_styles.
std::string page_styles();

}  // namespace rematch
