// The properties of the simulated card, which DRY_CUDA_CARD selects.
#pragma once

#include <cstddef>
#include <string_view>

namespace dry_cuda {

struct Card {
  std::string_view name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory_bytes;  // the total that CUDA reports; boards of the same model differ by a
                             // few MiB
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
    48 << 10;  // shared memory that a block may use, unless cudaFuncSetAttribute raises the limit

}  // namespace dry_cuda
