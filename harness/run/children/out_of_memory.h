// Reads the failed request out of an allocator's error message. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "policies/base/bytes.h"

namespace rematch {

// From the message of LibTorch's CUDA allocator, "Tried to allocate 20.00 MiB", which rounds to two
// decimals; or of its CPU allocator, "you tried to allocate 123 bytes". Nothing in any other.
std::optional<Bytes> requested_bytes(std::string_view message);

// Does an error say that memory ran out? LibTorch's CPU allocator, the CUDA runtime outside its
// allocator, cuBLAS, cuDNN and their kin each say so in their own words.
bool speaks_of_memory(std::string_view message);

}  // namespace rematch
