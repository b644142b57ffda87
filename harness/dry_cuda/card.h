// The properties of the dry devices that a program may query. They are figures of the card that
// DRY_CUDA_CARD names.
#pragma once

#include <cstddef>
#include <string_view>

namespace dry_cuda {

struct Card {
  std::string_view name;
  int major, minor;  // compute capability
  int multiprocessors;
  std::size_t memory_bytes;  // total that CUDA reports; boards differ by some MiB
  std::size_t shared_bytes_of_block, shared_bytes_of_multiprocessor;  // maximum
  int threads_of_multiprocessor, blocks_of_multiprocessor;
  std::size_t l2_bytes;
  int memory_bus_bits;
};

// Reads the card from the environment. Ends the program with a line on stderr if the card is
// unknown.
const Card& card();
int num_devices();
std::size_t memory_bytes();  // memory of each device

constexpr std::size_t kSharedBytesUnasked =
    48 << 10;  // limit of a block that did not call cudaFuncSetAttribute

}  // namespace dry_cuda
