// The memory of one device kind, behind one face: counting allocators on the CPU and on meta, the
// caching allocator on an accelerator. There allocations carry no tags, so storages are followed
// from outside; what nobody told of counts as kOther.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <optional>
#include <vector>

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
  struct Followed {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    MemoryTag tag = MemoryTag::kOther;
    Bytes bytes;
  };

  bool counts_itself() const { return device_.is_cpu() || device_.is_meta(); }
  Followed* find(const c10::Storage& storage);

  c10::Device device_;
  std::vector<Followed> followed_;  // accelerators only; the gone are dropped at each sample
};

}  // namespace rematch
