// The memory of one device kind, behind one face: counting allocators on the CPU and on meta, the
// caching allocator on an accelerator. There allocations carry no tags, so storages are followed
// from outside; what nobody told of counts as kOther.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <optional>

#include "harness/measure/followed_storages.h"
#include "harness/measure/memory.h"

namespace rematch {

class DeviceMemory {
 public:
  explicit DeviceMemory(c10::Device device);

  // Bytes alive. On an accelerator as its allocator counts them, rounding included.
  MemorySample sample();
  // Most bytes alive since reset_peak().
  Bytes peak();
  void reset_peak();
  // Bytes that the allocator has from the driver; absent on devices without one.
  std::optional<Bytes> peak_reserved();

  // As retag_storage(): moves an allocation's bytes to a tag, and says how many.
  Bytes tag_if_other(const c10::Storage& storage, MemoryTag tag);
  Bytes tag(const c10::Storage& storage, MemoryTag tag);

 private:
  bool counts_itself() const { return device_.is_cpu() || device_.is_meta(); }

  c10::Device device_;
  FollowedStorages followed_;  // accelerators only
};

}  // namespace rematch
