// Counting allocators: the exact bytes of the process's tensors, by tag, on the CPU and on meta. On
// meta a tensor has no data, so a model of any size is laid out in milliseconds. Op for op, meta
// allocates what the CPU would. Only the CPU also counts what kernels allocate inside.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "policies/base/bytes.h"

namespace c10 {
struct Allocator;
struct StorageImpl;
}  // namespace c10

namespace rematch {

// The purpose of an allocation. The code that is about to allocate sets it. Code that knows better
// later may change it (retag_storage).
enum class MemoryTag : std::uint8_t {
  kParameter,
  kForward,
  kRecompute,
  kBackward,
  kOptimizer,
  kOther,
  kGradient,  // gradients of parameters
  kFrozen,    // weights that are not trained
};
inline constexpr int kNumMemoryTags = 8;

// The machine has no memory left for a tensor. This is a result of a measurement, not a fault of
// the program.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(const std::string& message, Bytes requested_bytes, Bytes alive_bytes)
      : std::runtime_error(message), requested(requested_bytes), alive(alive_bytes) {}
  Bytes requested;
  Bytes alive;  // held by other tensors
};

// Bytes alive at one moment, in total and by tag, as rounded by the allocator. `requested` is not
// rounded.
struct MemorySample {
  Bytes total;
  std::array<Bytes, kNumMemoryTags> by_tag;
  Bytes requested;

  Bytes at(MemoryTag tag) const { return by_tag[static_cast<std::size_t>(tag)]; }
};

// The granularity to which CUDA's caching allocator rounds sizes up.
inline constexpr std::int64_t kCudaRounding = 512;

// Replaces LibTorch's CPU and meta allocators for the rest of the process. Call it before the first
// tensor. Counting is thread-safe. Sizes are the requested ones, rounded up to `round` bytes (1:
// exact). A second call changes `round` for later allocations.
void install_counting_allocators(std::int64_t round = 1);
bool counting_allocators_installed();

// Counts allocations while it lives, then restores the previous allocators. Does nothing if the
// counting allocators are installed. Figures exclude what was allocated before, so they are only
// good for differences and for tags. Use one guard at a time.
class CountingGuard {
 public:
  CountingGuard();
  ~CountingGuard();
  CountingGuard(const CountingGuard&) = delete;
  CountingGuard& operator=(const CountingGuard&) = delete;

 private:
  c10::Allocator* cpu_ = nullptr;  // the previous allocators; null: counting ones were installed
  c10::Allocator* meta_ = nullptr;
};
// Sets a limit. A CPU tensor that would take the total above it throws OutOfMemory, as on a machine
// with that much memory.
void limit_cpu_memory(std::optional<Bytes> limit);

// Bytes alive, per device kind. Throws std::logic_error if the allocators are not installed.
MemorySample current_cpu_memory();
MemorySample current_meta_memory();

// Most bytes alive since the last reset. This includes peaks between op boundaries, so it counts
// what kernels allocate inside.
Bytes peak_cpu_memory();
Bytes peak_meta_memory();
void reset_memory_peaks();

// Moves a storage's bytes from tag `from` to `to`. Returns how many: 0 if its allocation carries
// another tag or did not come from these allocators.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag from, MemoryTag to);
// Moves a storage's bytes from any tag to `to`. Returns how many.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag to);

// Retags all live memory as kOther, because its tags belong to an earlier measurement. Call it
// while no other thread allocates.
void forget_memory_tags();

// Tags what this thread allocates while it lives. Without a guard the tag is kOther.
class MemoryTagGuard {
 public:
  explicit MemoryTagGuard(MemoryTag tag);
  ~MemoryTagGuard();
  MemoryTagGuard(const MemoryTagGuard&) = delete;
  MemoryTagGuard& operator=(const MemoryTagGuard&) = delete;

 private:
  MemoryTag previous_;
};

}  // namespace rematch
