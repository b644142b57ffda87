// What a program may ask of the made-up devices: figures of the card that DRY_CUDA_CARD names.
#pragma once

#include <cstddef>
#include <string_view>

namespace dry_cuda {

struct Card {
  std::string_view name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory_bytes;  // as CUDA tells it, which differs by some MiB between boards
  std::size_t shared_bytes_of_block, shared_bytes_of_multiprocessor;  // the most
  int threads_of_multiprocessor, blocks_of_multiprocessor;
  std::size_t l2_bytes;
  int memory_bus_bits;
};

// From the environment; ends the program with a line on stderr if that asks for an unknown card.
const Card& card();
int num_devices();
std::size_t memory_bytes();  // of each device

constexpr std::size_t kSharedBytesUnasked = 48 << 10;  // without cudaFuncSetAttribute

}  // namespace dry_cuda
