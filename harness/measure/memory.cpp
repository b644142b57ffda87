#include "harness/measure/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>

namespace rematch {
namespace {

// Higher than the priority of LibTorch's own allocators, so that nothing replaces our allocators
// later.
constexpr std::uint8_t kAllocatorPriority = 100;

thread_local MemoryTag thread_tag = MemoryTag::kOther;
std::atomic<bool> installed{false};
// Allocations tagged before the last forget_memory_tags() count as kOther.
std::atomic<std::uint32_t> tag_generation{0};
std::atomic<std::int64_t> cpu_limit{std::numeric_limits<std::int64_t>::max()};

struct Allocation {
  std::int64_t bytes = 0;      // rounded
  std::int64_t requested = 0;  // the requested size, before rounding
  MemoryTag tag = MemoryTag::kOther;
  std::uint32_t generation = tag_generation.load(std::memory_order_relaxed);

  MemoryTag valid_tag() const {
    return generation == tag_generation.load(std::memory_order_relaxed) ? tag : MemoryTag::kOther;
  }
};

// Counts the bytes that tensors of one device type hold.
class Counters {
 public:
  std::int64_t rounded(std::size_t bytes) const {
    const std::int64_t round = round_.load(std::memory_order_relaxed);
    return round_up({static_cast<std::int64_t>(bytes)}, round).count;
  }
  void set_round(std::int64_t round) { round_.store(round, std::memory_order_relaxed); }

  void add(const Allocation& allocation) {
    slot(allocation.tag).fetch_add(allocation.bytes, std::memory_order_relaxed);
    requested_.fetch_add(allocation.requested, std::memory_order_relaxed);
    const std::int64_t total =
        total_.fetch_add(allocation.bytes, std::memory_order_relaxed) + allocation.bytes;
    std::int64_t peak = peak_.load(std::memory_order_relaxed);
    while (total > peak && !peak_.compare_exchange_weak(peak, total, std::memory_order_relaxed)) {
    }
  }
  void remove(const Allocation& allocation) {
    slot(allocation.valid_tag()).fetch_sub(allocation.bytes, std::memory_order_relaxed);
    requested_.fetch_sub(allocation.requested, std::memory_order_relaxed);
    total_.fetch_sub(allocation.bytes, std::memory_order_relaxed);
  }
  void move(std::int64_t bytes, MemoryTag from, MemoryTag to) {
    slot(from).fetch_sub(bytes, std::memory_order_relaxed);
    slot(to).fetch_add(bytes, std::memory_order_relaxed);
  }

  void forget_tags() {
    for (std::size_t tag = 0; tag < by_tag_.size(); ++tag) {
      slot(MemoryTag::kOther).fetch_add(by_tag_[tag].exchange(0));
    }
  }

  MemorySample sample() const {
    MemorySample sample{Bytes{total_.load(std::memory_order_relaxed)},
                        {},
                        Bytes{requested_.load(std::memory_order_relaxed)}};
    for (std::size_t tag = 0; tag < by_tag_.size(); ++tag) {
      sample.by_tag[tag] = Bytes{by_tag_[tag].load(std::memory_order_relaxed)};
    }
    return sample;
  }
  std::int64_t total() const { return total_.load(std::memory_order_relaxed); }
  Bytes peak() const { return Bytes{peak_.load(std::memory_order_relaxed)}; }
  void reset_peak() { peak_.store(total_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<std::int64_t>& slot(MemoryTag tag) { return by_tag_[static_cast<std::size_t>(tag)]; }

  std::atomic<std::int64_t> round_{1};
  std::atomic<std::int64_t> total_{0};
  std::atomic<std::int64_t> requested_{0};
  std::atomic<std::int64_t> peak_{0};
  std::array<std::atomic<std::int64_t>, kNumMemoryTags> by_tag_{};
};

Counters& cpu_counters() {
  static auto* counters = new Counters;  // The counters are leaked, because tensors of static
                                         // duration are freed after main().
  return *counters;
}

Counters& meta_counters() {
  // Leaked, because tensors of static duration are freed after main().
  static auto* counters = new Counters;
  return *counters;
}

// The header in front of the data of every CPU allocation. It takes a whole alignment unit, so that
// data stays aligned as LibTorch's kernels expect.
constexpr std::size_t kHeaderBytes = 64;
static_assert(sizeof(Allocation) <= kHeaderBytes);

Allocation* header_of(void* data) {
  return reinterpret_cast<Allocation*>(static_cast<char*>(data) - kHeaderBytes);
}

void release_cpu(void* data) {
  if (data == nullptr) return;
  Allocation* allocation = header_of(data);
  cpu_counters().remove(*allocation);
  c10::free_cpu(allocation);
}

[[noreturn]] void throw_out_of_memory(std::size_t num_bytes) {
  const Bytes requested{static_cast<std::int64_t>(num_bytes)};
  const Bytes alive = cpu_counters().sample().total;
  throw OutOfMemory("out of memory: requested " + std::to_string(requested.count) + " bytes with " +
                        std::to_string(alive.count) + " bytes in tensors",
                    requested, alive);
}

void* allocate_or_throw(std::size_t num_bytes) {
  const std::int64_t limit = cpu_limit.load(std::memory_order_relaxed);
  const std::int64_t bytes = cpu_counters().rounded(num_bytes);
  if (bytes > limit - cpu_counters().total()) throw_out_of_memory(num_bytes);
  try {
    return c10::alloc_cpu(num_bytes + kHeaderBytes);
  } catch (const c10::Error&) {
    throw_out_of_memory(num_bytes);
  }
}

// Sets raw_deleter, with the data pointer as its own context. LibTorch requires this for the raw
// pointers that oneDNN's bf16 matmul uses.
class CpuAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t num_bytes) override {
    if (num_bytes == 0) return {nullptr, nullptr, &release_cpu, c10::Device(c10::kCPU)};
    void* memory = allocate_or_throw(num_bytes);
    auto* allocation = new (memory) Allocation{cpu_counters().rounded(num_bytes),
                                               static_cast<std::int64_t>(num_bytes), thread_tag};
    cpu_counters().add(*allocation);
    void* data = static_cast<char*>(memory) + kHeaderBytes;
    return {data, data, &release_cpu, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_cpu; }
  void copy_data(void* to, const void* from, std::size_t num_bytes) const override {
    default_copy_data(to, from, num_bytes);
  }
};

void release_meta(void* context) {
  auto* allocation = static_cast<Allocation*>(context);
  meta_counters().remove(*allocation);
  delete allocation;
}

class MetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t num_bytes) override {
    auto* allocation = new Allocation{meta_counters().rounded(num_bytes),
                                      static_cast<std::int64_t>(num_bytes), thread_tag};
    meta_counters().add(*allocation);
    return {nullptr, allocation, &release_meta, c10::Device(c10::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {}
};

void require_installed() {
  if (!installed.load()) {
    throw std::logic_error(
        "the counting allocators are not installed; call install_counting_allocators() before the "
        "first tensor");
  }
}

// The allocation of a storage, and the counters that include it. Both are null if another allocator
// made the storage.
struct Located {
  Allocation* allocation = nullptr;
  Counters* counters = nullptr;
};

Located locate(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (data.get_context() == nullptr) return {};
  if (data.get_deleter() == &release_cpu) return {header_of(data.get_context()), &cpu_counters()};
  if (data.get_deleter() == &release_meta) {
    return {static_cast<Allocation*>(data.get_context()), &meta_counters()};
  }
  return {};
}

Bytes move_allocation(const Located& located, MemoryTag to) {
  located.counters->move(located.allocation->bytes, located.allocation->valid_tag(), to);
  located.allocation->tag = to;
  located.allocation->generation = tag_generation.load(std::memory_order_relaxed);
  return Bytes{located.allocation->bytes};
}

}  // namespace

void install_counting_allocators(std::int64_t round) {
  if (round < 1)
    throw std::invalid_argument(
        "allocation sizes must be rounded to a multiple of at least 1 byte");
  cpu_counters().set_round(round);
  meta_counters().set_round(round);
  if (installed.exchange(true)) return;
  static auto* cpu =
      new CpuAllocator;  // The allocator is leaked, because LibTorch keeps the pointer forever.
  static auto* meta = new MetaAllocator;  // leaked, because LibTorch keeps the pointer forever
  c10::SetCPUAllocator(cpu, kAllocatorPriority);
  c10::SetAllocator(c10::kMeta, meta, kAllocatorPriority);
}

bool counting_allocators_installed() { return installed.load(); }

CountingGuard::CountingGuard() {
  if (installed.load()) return;
  cpu_ = c10::GetCPUAllocator();
  meta_ = c10::GetAllocator(c10::kMeta);
  install_counting_allocators();
}

CountingGuard::~CountingGuard() {
  if (cpu_ == nullptr) return;
  c10::SetCPUAllocator(cpu_, kAllocatorPriority);
  c10::SetAllocator(c10::kMeta, meta_, kAllocatorPriority);
  installed.store(false);
}

void limit_cpu_memory(std::optional<Bytes> limit) {
  cpu_limit.store(limit ? limit->count : std::numeric_limits<std::int64_t>::max());
}

void forget_memory_tags() {
  cpu_counters().forget_tags();
  meta_counters().forget_tags();
  ++tag_generation;
}

MemorySample current_cpu_memory() {
  require_installed();
  return cpu_counters().sample();
}

MemorySample current_meta_memory() {
  require_installed();
  return meta_counters().sample();
}

Bytes peak_cpu_memory() {
  require_installed();
  return cpu_counters().peak();
}

Bytes peak_meta_memory() {
  require_installed();
  return meta_counters().peak();
}

void reset_memory_peaks() {
  cpu_counters().reset_peak();
  meta_counters().reset_peak();
}

Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag from, MemoryTag to) {
  const Located located = locate(storage);
  if (located.allocation == nullptr || located.allocation->valid_tag() != from) return {};
  return move_allocation(located, to);
}

Bytes retag_storage(const c10::StorageImpl& storage, MemoryTag to) {
  const Located located = locate(storage);
  return located.allocation == nullptr ? Bytes{} : move_allocation(located, to);
}

MemoryTagGuard::MemoryTagGuard(MemoryTag tag) : previous_(thread_tag) { thread_tag = tag; }
MemoryTagGuard::~MemoryTagGuard() { thread_tag = previous_; }

}  // namespace rematch
