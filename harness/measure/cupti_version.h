// Which CUPTI kernels would be counted with. Asks the library for its version and for nothing else,
// so it needs no driver and disturbs no measurement.
#pragma once

#include <optional>
#include <string>

namespace rematch {

// The library of the version that this code is written for; LibTorch ships it.
inline constexpr const char* kCuptiLibrary = "libcupti.so.13";

// "13.0.1", the last number being the update; nothing where the library is not there.
std::optional<std::string> cupti_version(const char* library = kCuptiLibrary);

}  // namespace rematch
