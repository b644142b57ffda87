// What an allocator's error says of the request that failed. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "policies/trace/bytes.h"

namespace rematch {

// From the message of LibTorch's CUDA allocator, "Tried to allocate 20.00 MiB", which rounds to two
// decimals; or of its CPU allocator, "you tried to allocate 123 bytes". Nothing in any other.
std::optional<Bytes> requested_bytes(std::string_view message);

}  // namespace rematch
