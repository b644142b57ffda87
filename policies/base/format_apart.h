// Formats an amount beside another one that must not look equal.
#pragma once

#include <string>

#include "policies/base/bytes.h"

namespace rematch {

// Like format_bytes(), but with as many digits as it takes to differ from `other`, for example
// "196.5 KiB" beside 196 KiB. Shows bytes if six decimals do not suffice.
std::string format_apart(Bytes bytes, Bytes other);

}  // namespace rematch
