#include "harness/measure/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace rematch {
namespace {

// The granularity of CUDA's caching allocator. Its statistics count rounded sizes.
constexpr std::int64_t kAcceleratorRounding = 512;
constexpr std::size_t kAllPools = 0;  // index of the total in a StatArray

Bytes rounded(std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  return Bytes{(count + kAcceleratorRounding - 1) / kAcceleratorRounding * kAcceleratorRounding};
}

c10::CachingDeviceAllocator::DeviceStats statistics_of(c10::Device device) {
  return c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
}

}  // namespace

DeviceMemory::DeviceMemory(c10::Device device)
    : device_(device.type(), !device.is_cpu() && !device.is_meta() && !device.has_index()
                                 ? c10::DeviceIndex{0}
                                 : device.index()) {}

MemorySample DeviceMemory::sample() {
  if (device_.is_meta()) return current_meta_memory();
  if (device_.is_cpu()) return current_cpu_memory();
  MemorySample sample;
  const c10::CachingDeviceAllocator::DeviceStats statistics = statistics_of(device_);
  sample.total = Bytes{statistics.allocated_bytes[kAllPools].current};
  sample.requested = Bytes{statistics.requested_bytes[kAllPools].current};
  Bytes other = sample.total;
  for (const FollowedStorage& entry : followed_.alive()) {
    sample.by_tag[static_cast<std::size_t>(entry.tag)] += entry.bytes;
    other -= entry.bytes;
  }
  sample.by_tag[static_cast<std::size_t>(MemoryTag::kOther)] += other;
  return sample;
}

Bytes DeviceMemory::peak() {
  if (device_.is_meta()) return peak_meta_memory();
  if (device_.is_cpu()) return peak_cpu_memory();
  return Bytes{statistics_of(device_).allocated_bytes[kAllPools].peak};
}

void DeviceMemory::reset_peak() {
  if (counts_itself()) {
    reset_memory_peaks();
  } else {
    c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
  }
}

std::optional<Bytes> DeviceMemory::peak_reserved() {
  if (counts_itself()) return std::nullopt;
  return Bytes{statistics_of(device_).reserved_bytes[kAllPools].peak};
}

Bytes DeviceMemory::tag_if_other(const c10::Storage& storage, MemoryTag tag) {
  if (counts_itself()) {
    return retag_storage(*storage.unsafeGetStorageImpl(), MemoryTag::kOther, tag);
  }
  if (storage.device_type() != device_.type() || storage.nbytes() == 0) return {};
  const Bytes bytes = rounded(storage.nbytes());
  return followed_.follow(storage, tag, bytes) ? bytes : Bytes{};
}

Bytes DeviceMemory::tag(const c10::Storage& storage, MemoryTag tag) {
  if (counts_itself()) return retag_storage(*storage.unsafeGetStorageImpl(), tag);
  FollowedStorage* const entry = followed_.find(storage);
  if (entry == nullptr) return tag_if_other(storage, tag);
  entry->tag = tag;
  return entry->bytes;
}

}  // namespace rematch
