// The device properties that a program may query. They are those of the card that DRY_CUDA_CARD
// names.
#pragma once

#include <cstddef>
#include <string_view>

namespace dry_cuda {

struct Card {
  std::string_view name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory_bytes;  // the total that CUDA reports; boards of a kind differ by some MiB
  std::size_t shared_bytes_of_block, shared_bytes_of_multiprocessor;  // maximum
  int threads_of_multiprocessor, blocks_of_multiprocessor;
  std::size_t l2_bytes;
  int memory_bus_bits;
};

// Reads the card's name from the environment. If the name is unknown, prints an error and exits.
const Card& card();
int num_devices();
std::size_t memory_bytes();  // memory of each device

constexpr std::size_t kSharedBytesUnasked =
    48 << 10;  // shared memory of a block, unless cudaFuncSetAttribute raises it

}  // namespace dry_cuda
