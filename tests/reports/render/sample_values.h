// Values shared by the synthetic reports and fronts.
#pragma once

#include <cstdint>

namespace rematch::testing {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;  // bytes
// A name that must be escaped in markup.
inline constexpr const char* kHostile = "<script>alert('x')</script>&\"quoted\"";

}  // namespace rematch::testing
