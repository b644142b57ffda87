// Counting allocators: exact bytes of the process's tensors, by tag, on the CPU and on meta.
// On meta a tensor has no data, so a model of any size is laid out in milliseconds; op for op it
// allocates what the CPU would. What kernels allocate inside is seen on the CPU only.
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

// Who an allocation was made for; set by the code that is about to allocate, or by whoever knows
// better later (retag_storage).
enum class MemoryTag : std::uint8_t {
  kParameter,
  kForward,
  kRecompute,
  kBackward,
  kOptimizer,
  kOther,
  kGradient,  // gradients of parameters
  kFrozen,    // weights that do not learn
};
inline constexpr int kNumMemoryTags = 8;

// The machine has no memory for a tensor. A result of a measurement, not a fault of the program.
struct OutOfMemory : std::runtime_error {
  OutOfMemory(const std::string& message, Bytes requested_bytes, Bytes alive_bytes)
      : std::runtime_error(message), requested(requested_bytes), alive(alive_bytes) {}
  Bytes requested;
  Bytes alive;  // in other tensors
};

// Bytes alive at one moment, in all and by tag, as the allocator rounds them; and what was asked
// for.
struct MemorySample {
  Bytes total;
  std::array<Bytes, kNumMemoryTags> by_tag;
  Bytes requested;

  Bytes at(MemoryTag tag) const { return by_tag[static_cast<std::size_t>(tag)]; }
};

// The granularity to which CUDA's caching allocator rounds sizes up.
inline constexpr std::int64_t kCudaRounding = 512;

// Replaces LibTorch's CPU and meta allocators for the rest of the process. Call before the first
// tensor. Thread-safe counting; sizes are what was asked for, rounded up to `round` bytes (1:
// exact). A second call changes `round` for later allocations.
void install_counting_allocators(std::int64_t round = 1);
bool counting_allocators_installed();

// Counts allocations while it lives, and puts the allocators that were there back; nothing where
// counting ones are installed. What was allocated before is in no figure, so figures are good for
// differences and for tags. One at a time.
class CountingGuard {
 public:
  CountingGuard();
  ~CountingGuard();
  CountingGuard(const CountingGuard&) = delete;
  CountingGuard& operator=(const CountingGuard&) = delete;

 private:
  c10::Allocator* cpu_ = nullptr;  // that were there; null: counting ones
  c10::Allocator* meta_ = nullptr;
};
// From here on a CPU tensor that would take the total above the limit throws OutOfMemory, as on a
// machine with that much memory.
void limit_cpu_memory(std::optional<Bytes> limit);

// Bytes alive, per device kind. Throws std::logic_error if the allocators are not installed.
MemorySample current_cpu_memory();
MemorySample current_meta_memory();

// Most bytes alive since the last reset, between op boundaries included: this sees what kernels
// allocate inside.
Bytes peak_cpu_memory();
Bytes peak_meta_memory();
void reset_memory_peaks();

// Moves a storage's bytes from tag `from` to `to` and says how many. None, if its allocation
// carries another tag or did not come from these allocators.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag from, MemoryTag to);
// The same, whatever tag it carries.
Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag to);

// Memory that is alive is nobody's from here on, kOther: an earlier measurement told whose it was
// then. Call it while no other thread allocates.
void forget_memory_tags();

// Tags what this thread allocates while it lives. Untagged: kOther.
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
