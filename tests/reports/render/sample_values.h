// What the made-up reports and fronts are built of.
#pragma once

#include <cstdint>

namespace rematch::testing {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;  // bytes
// A name that must not become markup.
inline constexpr const char* kHostile = "<script>alert('x')</script>&\"quoted\"";

}  // namespace rematch::testing
