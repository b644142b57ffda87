// Counting allocators: count the exact bytes of the process's tensors, by tag, on the CPU and on
// meta. An op allocates the same bytes on both, but a meta tensor has no data, so a step of any
// model takes milliseconds. On the CPU, the memory that kernels allocate internally is included.
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

// The purpose of an allocation. The code that is about to allocate sets the tag. Code that knows
// the purpose better may change the tag later (retag_storage).
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

// Thrown if the machine has no memory left for a tensor. A measurement treats this as a result, not
// as an error of the program.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(const std::string& message, Bytes requested_bytes, Bytes alive_bytes)
      : std::runtime_error(message), requested(requested_bytes), alive(alive_bytes) {}
  Bytes requested;
  Bytes alive;  // bytes that other tensors held when the allocation failed
};

// Bytes alive at one moment, in total and by tag, as rounded by the allocator. `requested` counts
// the sizes before rounding.
struct MemorySample {
  Bytes total;
  std::array<Bytes, kNumMemoryTags> by_tag;
  Bytes requested;

  Bytes at(MemoryTag tag) const { return by_tag[static_cast<std::size_t>(tag)]; }
};

// The granularity to which CUDA's caching allocator rounds sizes up.
inline constexpr std::int64_t kCudaRounding = 512;

// Replaces LibTorch's CPU and meta allocators for the rest of the process. Call this before the
// first tensor is made. Sizes are rounded up to a multiple of `round` bytes. A second call changes
// `round` for later allocations. Counting is thread-safe.
void install_counting_allocators(std::int64_t round = 1);
bool counting_allocators_installed();

// Counts allocations while it lives, then restores the previous allocators. Has no effect if the
// counting allocators are already installed. Counts no earlier allocations, so only differences and
// the bytes of a tag are meaningful. Use one guard at a time.
class CountingGuard {
 public:
  CountingGuard();
  ~CountingGuard();
  CountingGuard(const CountingGuard&) = delete;
  CountingGuard& operator=(const CountingGuard&) = delete;

 private:
  c10::Allocator* cpu_ =
      nullptr;  // the previous allocators; null if the counting allocators were already installed
  c10::Allocator* meta_ = nullptr;
};
// Sets a memory limit for CPU tensors. A tensor that would exceed the limit throws OutOfMemory, as
// on a machine with that much memory.
void limit_cpu_memory(std::optional<Bytes> limit);

// Bytes alive, per device kind. Throws std::logic_error if the allocators are not installed.
MemorySample current_cpu_memory();
MemorySample current_meta_memory();

// Most bytes alive since the last reset, including memory that kernels allocate only while they
// run.
Bytes peak_cpu_memory();
Bytes peak_meta_memory();
void reset_memory_peaks();

// Moves a storage's bytes from tag `from` to `to`. Returns the number of bytes moved: 0 if the
// allocation has another tag or another allocator made it.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag from, MemoryTag to);
// Moves a storage's bytes from any tag to `to`. Returns the number of bytes moved.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag to);

// Gives all live memory the tag kOther, at the start of a new measurement. Call this while no other
// thread allocates.
void forget_memory_tags();

// While this guard lives, it sets the tag of the memory that this thread allocates. Without a
// guard, the tag is kOther.
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
