#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include <cstddef>
#include <optional>

#include "harness/profile/allocator_snapshot.h"

namespace rematch {
namespace {

// Steps of large models cause about ten thousand events of a few hundred bytes each.
constexpr std::size_t kMaxEvents = 1'000'000;

}  // namespace

// Records no C++ stacks. C++ stacks would only show the engine and LibTorch, and would slow the
// steps down.
void record_allocations() {
  torch::cuda::_record_memory_history("all", /*context=*/std::nullopt, /*stacks=*/"python",
                                      kMaxEvents, /*clearHistory=*/true);
}

std::string take_allocator_snapshot() {
  std::string pickled = torch::cuda::_memory_snapshot_pickled();
  torch::cuda::_record_memory_history(/*enabled=*/std::nullopt);
  return pickled;
}

void name_allocations(const std::string& name) {
  c10::cuda::CUDACachingAllocator::setUserMetadata(name);
}

}  // namespace rematch
