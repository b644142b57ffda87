// SHA-256, for the keys of points and the hashes of traces and plans.
#pragma once

#include <string>
#include <string_view>

namespace rematch {

// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace rematch
