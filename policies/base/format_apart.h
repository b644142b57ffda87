// Formats an amount so that its text differs from the text of another, nearly equal amount.
#pragma once

#include <string>

#include "policies/base/bytes.h"

namespace rematch {

// Like format_bytes(), but adds digits until the text differs from the text of `other`: "196.5 KiB"
// next to "196 KiB". If six decimals are not enough, writes the number of bytes.
std::string format_apart(Bytes bytes, Bytes other);

}  // namespace rematch
